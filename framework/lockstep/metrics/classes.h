// Metrics of classes: of samples, or of positions such as pixels. Predictions are logits (samples, classes, ...) with
// class indices i32 (samples, ...), where positions with the ignored index count nowhere; or logits of any shape
// (samples, ...) with targets 0 or 1 of the same shape and type: two classes, of which 1 is the positive one, which a
// logit above 0 predicts. Counts are exact, so results are the same bits at any number of ranks, shards and
// micro-batches. The functions throw Error for shapes and types that do not fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/graph/metric.h"

namespace lockstep::metrics {

struct ClassOptions {
  std::optional<std::int32_t> ignore_index = -100;  // as that of cross_entropy()
  std::vector<std::string> names{};                 // of the classes, in logs; empty: their numbers
};

// With TP right predictions of a class, P predictions of it and T positions of it: TP / (P + T - TP), the index of
// Jaccard; 2 TP / (P + T), the coefficient of Dice and the same as F1; TP / P; TP / T.
enum class ClassScore : std::uint8_t { Iou, Dice, Precision, Recall, F1 };

// The score of each class: "iou_by_class", "dice_by_class", ... Not a number for a class that is absent from targets
// and predictions, and 0 where only the denominator is 0, as in scikit-learn.
Metric score_by_class(ClassScore score, Value logits, Value target, ClassOptions options = {});
// Its mean over the classes that targets or predictions contain: "mean_iou", "mean_dice", ... (scikit-learn's average
// "macro").
Metric mean_score(ClassScore score, Value logits, Value target, const ClassOptions& options = {});
// The score of class 1 of two classes: "iou", "dice", "precision", "recall", "f1". Throws Error for other numbers.
Metric positive_score(ClassScore score, Value logits, Value target, const ClassOptions& options = {});

// How many positions of class i (row) were predicted as class j (column): a table "confusion", in evaluations alone.
Metric confusion_matrix(Value logits, Value target, ClassOptions options = {});

// The area under the receiver operating characteristic, "auc": the share of pairs of a positive and a negative in which
// the positive has the larger score, where equal scores count half (Hanley and McNeil, 1982). Of more than two classes:
// the mean over classes of one against the rest, of those that are there, with the logarithm of the softmax as score
// (computed in f64). Exact: an evaluation collects 24 bytes for each score, and merges the sorted scores of all ranks.
// Not a number without positives or negatives, and if a score is not a number. In evaluations alone.
Metric auc(Value logits, Value target, const ClassOptions& options = {});

// The mean over groups of samples, such as those of a user, of the area under the curve of each group, weighted by its
// samples: "group_auc" (Zhu et al., "Optimized cost per click in Taobao display advertising", 2017, eq. 4). Groups
// without positives or without negatives are left out. Logits and targets, 0 or 1, are (samples), and so are the
// groups, integers or numbers. Exact as auc().
Metric grouped_auc(Value logits, Value target, Value group, std::string_view name = "group_auc");

}  // namespace lockstep::metrics
