// Element-wise optimizers: w, m, ... <- f(w, g, m, ...; step, rates), with the same f for every element. So the owner
// of any range of a bucket can update it in one pass over memory. A rule has no state of its own: the caller owns the
// state of the elements, beside the parameters. Rules are immutable; any thread may call apply().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::optim {

// The values that change from step to step, or differ between parameter groups.
struct Rates {
  double learning_rate = 0;
  double weight_decay = 0;
  double gradient_scale = 1;  // factor on the gradient, a sum over samples: 1 / (total weight of the samples)
  std::int64_t step = 1;      // number of this update, from 1
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  virtual std::string_view name() const = 0;                 // as on the command line
  virtual std::vector<std::string_view> states() const = 0;  // names of the states, as in checkpoints
  // Updates n elements of value and of each state by n elements of gradient, on the calling thread; the caller divides
  // ranges among threads. An element whose value, gradient and states are 0 (padding) stays 0.
  virtual void apply(std::int64_t n, float* value, const float* gradient, std::span<float* const> states,
                     const Rates& rates) const = 0;
  virtual void apply(std::int64_t n, double* value, const double* gradient, std::span<double* const> states,
                     const Rates& rates) const = 0;
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
};
// Stochastic gradient descent as in torch.optim.SGD: g += decay * w; m = momentum * m + g (m = g in the first step);
// w -= rate * (nesterov ? g + momentum * m : m). Without momentum there is no state.
std::unique_ptr<UpdateRule> sgd(SgdOptions options);

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled_decay = false;  // AdamW
};
// Adam (Kingma and Ba, "Adam" (2015), algorithm 1), or with decoupled decay AdamW (Loshchilov and Hutter, "Decoupled
// weight decay regularization" (2019), algorithm 2). As in PyTorch, epsilon is added to the bias-corrected root.
std::unique_ptr<UpdateRule> adam(AdamOptions options);

struct RmspropOptions {
  double alpha = 0.99, epsilon = 1e-8, momentum = 0;
  bool centered = false;  // divide by the standard deviation of the gradient, not by its root mean square
};
// RMSprop as in torch.optim.RMSprop (Tieleman and Hinton, "Lecture 6.5" (2012); centered: Graves, "Generating sequences
// with recurrent neural networks" (2013), eq. 38 to 45): g += decay * w; v = alpha * v + (1 - alpha) * g^2; with
// centered m = alpha * m + (1 - alpha) * g and v - m^2 in place of v; w -= rate * g / (sqrt(v) + epsilon), or with
// momentum b = momentum * b + g / (sqrt(v) + epsilon) and w -= rate * b.
std::unique_ptr<UpdateRule> rmsprop(RmspropOptions options);

}  // namespace lockstep::optim
