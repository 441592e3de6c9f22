// Losses of classes and probabilities, beside cross_entropy() (ops/cross_entropy.h). Logits or probabilities and
// targets have one shape (samples, ...) and one floating type; targets are probabilities, 0 or 1 for a known class.
// Samples and elements may have weights (graph/loss.h). All can be differentiated any number of times. The functions
// throw Error where shapes or types do not fit, and for an option out of its range.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/graph/loss.h"

namespace lockstep {

// Returns the mean over all elements of -(w t log s(x) + (1 - t) log(1 - s(x))) for logits x, where s is the sigmoid
// and w the weight of positive targets (torch.nn.BCEWithLogitsLoss). With weights the mean is the weighted one, where
// PyTorch divides by the number of elements.
struct BinaryCrossEntropyOptions {
  double pos_weight = 1;   // w, at least 0
  Value pos_weights = {};  // in place of pos_weight: broadcasts to the logits, for instance (channels, 1, 1)
};
Loss binary_cross_entropy_with_logits(Value logits, Value target, const BinaryCrossEntropyOptions& options = {},
                                      const LossWeights& weights = {});

// Returns the mean over all elements of a (1 - q)^gamma (-log q) for logits x, where q is the probability of the
// target: s(x) for the target 1, 1 - s(x) for 0, and a is alpha for 1 and 1 - alpha for 0 (Lin et al., "Focal loss for
// dense object detection", 2017, eq. 5; torchvision's sigmoid_focal_loss with reduction="mean").
struct FocalOptions {
  double alpha = 0.25;  // up to 1; negative: a is 1
  double gamma = 2;     // at least 0
};
Loss sigmoid_focal_loss(Value logits, Value target, FocalOptions options = {}, const LossWeights& weights = {});

// Returns the Kullback-Leibler divergence of a prediction from a target, the sum over the elements of a sample of
// t (log t - log p), as a mean over samples (torch.nn.KLDivLoss with reduction="batchmean"). The prediction is given as
// log p. A mask weighs elements in the sum.
struct KlDivOptions {
  bool log_target = false;  // the target is given as log t
};
Loss kl_div(Value log_prediction, Value target, KlDivOptions options = {}, const LossWeights& weights = {});

// Returns the mean over samples and channels of 1 - (2 sum p t + smooth) / (sum p + sum t + smooth) for probabilities p
// and targets t (samples, channels, ...), with sums over all further dimensions (Milletari et al., "V-Net", 2016, whose
// denominator has squares). A mask weighs elements in the sums. The target may be class indices i32 (samples, ...) too:
// t is then 1 in the channel of the class, and a position with the ignored index is in no sum.
struct DiceOptions {
  bool squared = false;  // the denominator sums p^2 and t^2, as in the paper
  double smooth = 1e-5;  // at least 0; the loss of a channel without any target and prediction is 0 if it is above 0
  std::optional<std::int32_t> ignore_index = -100;  // as that of cross_entropy()
};
Loss dice_loss(Value probabilities, Value target, DiceOptions options = {}, const LossWeights& weights = {});

// Returns the mean over samples of 1 - cos(a, b) for pairs whose target is 1, and of max(0, cos(a, b) - margin) for the
// others, whose target is -1 (torch.nn.CosineEmbeddingLoss). a and b are (samples, ...) of one shape, the target is
// (samples); a mask is one of samples too.
struct CosineEmbeddingOptions {
  double margin = 0;  // -1 to 1
};
Loss cosine_embedding_loss(Value a, Value b, Value target, CosineEmbeddingOptions options = {},
                           const LossWeights& weights = {});

}  // namespace lockstep
