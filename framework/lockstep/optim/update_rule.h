// Element-wise optimizers: w, m, ... <- f(w, g, m, ...; step, rates), the same for every element of a stretch of
// memory, so buckets are updated in one pass over them, in slices, by whoever owns a slice. Stateless themselves; the
// state lies beside the parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::optim {

// What changes per step and per parameter group.
struct Rates {
  double learning_rate = 0;
  double weight_decay = 0;
  double gradient_scale = 1;  // the gradient is a sum over samples; this is 1 / (their weight)
  std::int64_t step = 1;      // of this update, from 1
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  virtual std::string_view name() const = 0;
  virtual std::vector<std::string_view> states() const = 0;  // names of the per-element state, as stored in checkpoints
  // n elements of value, gradient and each state, on the calling thread; callers share ranges out. Elements that are
  // zero everywhere (padding) stay zero.
  virtual void apply(std::int64_t n, float* value, const float* gradient, std::span<float* const> states,
                     const Rates& rates) const = 0;
  virtual void apply(std::int64_t n, double* value, const double* gradient, std::span<double* const> states,
                     const Rates& rates) const = 0;
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
};
// As torch.optim.SGD: g += decay * w; m = momentum * m + g (m = g at first); w -= rate * (nesterov ? g + momentum * m :
// m).
std::unique_ptr<UpdateRule> sgd(SgdOptions options);

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled_decay = false;  // AdamW
};
// Kingma and Ba, "Adam" (2015), algorithm 1; with decoupled decay Loshchilov and Hutter, "Decoupled weight decay
// regularization" (2019), algorithm 2. As in PyTorch: epsilon is added to the bias-corrected root.
std::unique_ptr<UpdateRule> adam(AdamOptions options);

struct RmspropOptions {
  double alpha = 0.99, epsilon = 1e-8, momentum = 0;
  bool centered = false;  // divides by the deviation of the gradient in place of its root mean square
};
// As torch.optim.RMSprop (Tieleman and Hinton, "Lecture 6.5" (2012); centered as Graves, "Generating sequences with
// recurrent neural networks" (2013), eq. 38 to 45): g += decay * w; v = alpha * v + (1 - alpha) * g^2; with centered
// m = alpha * m + (1 - alpha) * g and v - m^2 in place of v; w -= rate * g / (sqrt(v) + epsilon), or with momentum
// b = momentum * b + g / (sqrt(v) + epsilon) and w -= rate * b.
std::unique_ptr<UpdateRule> rmsprop(RmspropOptions options);

}  // namespace lockstep::optim
