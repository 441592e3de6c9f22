// Element-wise optimizers: w, m, ... <- f(w, g, m, ...; step, rates), with the same f for every element. So the owner
// of any range of a bucket can update it in one pass over memory. LARS and LAMB also need norms over a whole parameter:
// squares() gives the sums of a part, the caller adds them up over all parts, and trust() makes the factor of the
// parameter's rate from them. A rule has no state of its own: the caller owns the state of the elements, beside the
// parameters. Rules are immutable; any thread may call their functions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::optim {

// The values that change from step to step, or differ between parameter groups.
struct Rates {
  double learning_rate = 0;
  double weight_decay = 0;
  double gradient_scale = 1;  // factor on the gradient, a sum over samples: 1 / (total weight of the samples)
  std::int64_t step = 1;      // number of this update, from 1
  double clip_value = 0;      // each element of the scaled gradient is brought into [-clip_value, clip_value]; 0: any
  double trust = 1;           // trust() of the parameter, of a rule that uses norms
};

// Sums of squares over elements of one parameter: of its values, and of its gradient (LARS) or its step (LAMB).
struct Squares {
  double values = 0, steps = 0;
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  virtual std::string_view name() const = 0;  // as on the command line
  // Returns the settings as text, "momentum 0.9": ranks whose rules differ are refused. A rule without settings has
  // none.
  virtual std::string settings() const { return {}; }
  virtual std::vector<std::string_view> states() const = 0;  // names of the states, as in checkpoints
  // Updates n elements of value and of each state by n elements of gradient, on the calling thread; the caller divides
  // ranges among threads. The value of an element whose value, gradient and states are 0 (padding) stays 0.
  virtual void apply(std::int64_t n, float* value, const float* gradient, std::span<float* const> states,
                     const Rates& rates) const = 0;
  virtual void apply(std::int64_t n, double* value, const double* gradient, std::span<double* const> states,
                     const Rates& rates) const = 0;

  // Whether Rates::trust must be set from the squares of whole parameters. The functions below are for such rules.
  virtual bool uses_norms() const { return false; }
  // Returns the squares of n elements before the update, in an order of additions that depends on n alone.
  virtual Squares squares(std::int64_t n, const float* value, const float* gradient, std::span<float* const> states,
                          const Rates& rates) const;
  virtual Squares squares(std::int64_t n, const double* value, const double* gradient, std::span<double* const> states,
                          const Rates& rates) const;
  // Returns the trust ratio of a parameter from the squares of all its elements.
  virtual double trust(const Squares& /*squares*/, const Rates& /*rates*/) const { return 1; }
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

struct AdagradOptions {
  double epsilon = 1e-10;
};
// Adagrad (Duchi, Hazan and Singer, "Adaptive subgradient methods" (2011)) as in torch.optim.Adagrad: g += decay * w;
// s += g^2; w -= rate * g / (sqrt(s) + epsilon). A schedule takes the place of PyTorch's lr_decay.
std::unique_ptr<UpdateRule> adagrad(AdagradOptions options);

// Of AdamOptions, decoupled_decay has no meaning for these three: they add decay * w to the gradient, as in PyTorch.
// Adamax (Kingma and Ba, "Adam" (2015), algorithm 2) as in torch.optim.Adamax: u = max(beta2 * u, |g| + epsilon).
std::unique_ptr<UpdateRule> adamax(AdamOptions options);
// NAdam (Dozat, "Incorporating Nesterov momentum into Adam" (2016)) as in torch.optim.NAdam of PyTorch 2 (PyTorch 1.13
// multiplies the product of the next step by this step's momentum once more). momentum_decay is 0.004.
std::unique_ptr<UpdateRule> nadam(AdamOptions options);
// RAdam (Liu et al., "On the variance of the adaptive learning rate and beyond" (2020), algorithm 2) as in
// torch.optim.RAdam.
std::unique_ptr<UpdateRule> radam(AdamOptions options);

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99;
};
// Lion (Chen et al., "Symbolic discovery of optimization algorithms" (2023), algorithm 2): w -= rate * (sign(beta1 * m
// + (1 - beta1) * g) + decay * w); m = beta2 * m + (1 - beta2) * g.
std::unique_ptr<UpdateRule> lion(LionOptions options);

struct LarsOptions {
  double momentum = 0.9;
  double coefficient = 0.001;  // of the trust ratio
  double epsilon = 1e-8;
};
// LARS (You, Gitman and Ginsburg, "Large batch training of convolutional networks" (2017), algorithm 1): trust =
// coefficient * |w| / (|g| + decay * |w| + epsilon), or 1 if |w| or |g| is 0; m = momentum * m + rate * trust * (g +
// decay * w); w -= m.
std::unique_ptr<UpdateRule> lars(LarsOptions options);

struct LambOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6;
};
// LAMB (You et al., "Large batch optimization for deep learning" (2020), algorithm 2, with its phi the identity): u =
// Adam's bias-corrected step + decay * w; trust = |w| / |u|, or 1 if one of them is 0; w -= rate * trust * u.
std::unique_ptr<UpdateRule> lamb(LambOptions options);

}  // namespace lockstep::optim
