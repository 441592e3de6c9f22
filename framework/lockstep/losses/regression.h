// Losses between numbers: a prediction and a target of one shape (samples, ...) and one floating type. A loss is the
// mean over all elements unless its function says otherwise; samples and elements may have weights (graph/loss.h). All
// can be differentiated any number of times. The functions throw Error where shapes or types do not fit, and for an
// option out of its range.
#pragma once

#include "lockstep/graph/loss.h"

namespace lockstep {

// Returns the mean of |p - t|.
Loss l1_loss(Value prediction, Value target, const LossWeights& weights = {});

// Returns the mean of (p - t)^2.
Loss mean_squared_error(Value prediction, Value target, const LossWeights& weights = {});

// Returns the mean of d^2 / 2 where d = |p - t| is at most delta, and of delta (d - delta / 2) elsewhere (Huber,
// "Robust estimation of a location parameter", 1964; torch.nn.HuberLoss).
struct HuberOptions {
  double delta = 1;  // above 0
};
Loss huber_loss(Value prediction, Value target, HuberOptions options = {}, const LossWeights& weights = {});

// Returns the mean of d^2 / (2 beta) where d = |p - t| is below beta, and of d - beta / 2 elsewhere: the loss of Huber
// divided by beta (torch.nn.SmoothL1Loss). With a beta of 0 it is l1_loss().
struct SmoothL1Options {
  double beta = 1;  // at least 0
};
Loss smooth_l1_loss(Value prediction, Value target, SmoothL1Options options = {}, const LossWeights& weights = {});

// Returns the mean over samples of ||p - t|| / (||t|| + epsilon), where ||.|| is the root of the sum of squares of all
// elements of a sample (Li et al., "Fourier neural operator for parametric partial differential equations", 2021,
// section 5). A mask leaves elements out of both norms.
struct RelativeL2Options {
  double epsilon = 1e-8;  // at least 0; bounds the loss of a sample whose target is 0
};
Loss relative_l2_loss(Value prediction, Value target, RelativeL2Options options = {}, const LossWeights& weights = {});

// Returns the mean of (log v + (t - p)^2 / v) / 2, the negative logarithm of the density of a normal distribution with
// mean p and variance v = max(variance, epsilon), without its constant unless `full` (Nix and Weigend, "Estimating the
// mean and variance of the target probability distribution", 1994; torch.nn.GaussianNLLLoss). `variance` has a shape
// that broadcasts to that of the prediction. Where it is below epsilon its gradient is 0, unlike PyTorch's.
struct GaussianNllOptions {
  bool full = false;      // adds log(2 pi) / 2
  double epsilon = 1e-6;  // above 0
};
Loss gaussian_nll_loss(Value prediction, Value target, Value variance, GaussianNllOptions options = {},
                       const LossWeights& weights = {});

}  // namespace lockstep
