#include "lockstep/metrics/classes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/class_counts.h"
#include "lockstep/ops/one_hot.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"
#include "lockstep/ops/to_floating.h"

namespace lockstep::metrics {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string name_of(ClassScore score) {
  switch (score) {
    case ClassScore::Iou:
      return "iou";
    case ClassScore::Dice:
      return "dice";
    case ClassScore::Precision:
      return "precision";
    case ClassScore::Recall:
      return "recall";
    case ClassScore::F1:
      break;
  }
  return "f1";
}

// The score of one class from its counts; NaN: the class is neither there nor predicted.
double score_of(ClassScore score, double right, double predicted, double there) {
  if (predicted + there == 0) return kNone;
  const double all = score == ClassScore::Iou         ? predicted + there - right
                     : score == ClassScore::Precision ? predicted
                     : score == ClassScore::Recall    ? there
                                                      : (predicted + there) / 2;
  return all == 0 ? 0 : right / all;
}

double score_at(ClassScore score, std::span<const double> counts, std::size_t c) {
  const std::size_t classes = counts.size() / 3;
  return score_of(score, counts[c], counts[classes + c], counts[2 * classes + c]);
}

void check_names(const ClassOptions& options, std::int64_t classes) {
  check(options.names.empty() || std::ssize(options.names) == classes, "metric",
        "{} names of classes for {} classes, expected one for each, or none", options.names.size(), classes);
}

Metric scores(std::string name, Value counts) {
  return {.rule = {.name = std::move(name), .better = Better::Higher}, .sums = {counts}};
}

// The sums that the pairs of one group give.
struct GroupArea {
  double area = kNone;  // not a number without positives or negatives, or if a score is not a number
  double pairs = 0;
  bool ordered = true;  // no score is NaN
};

// Reads the pairs, with labels 1 and 0 and in the order of scores, of the group of `pair`; `pair` is then the first one
// of the next group, unless `more` is false.
GroupArea next_area(const NextPair& next, ScoredPair& pair, bool& more) {
  std::uint64_t positives = 0, negatives = 0, twice = 0;  // twice: of a pair in order 2, of a tie 1
  const double group = pair.group;
  while (more && pair.group == group) {
    const double score = pair.score;
    if (std::isnan(score)) return {.ordered = false};
    std::uint64_t here[2] = {};  // negatives, positives
    for (; more && pair.group == group && pair.score == score; more = next(pair)) ++here[pair.label > 0.5 ? 1 : 0];
    twice += here[1] * (2 * negatives + here[0]);
    positives += here[1];
    negatives += here[0];
    check(positives + negatives <= std::numeric_limits<std::uint32_t>::max(), "metric",
          "auc: more than {} scores, expected fewer: their pairs could not be counted",
          std::numeric_limits<std::uint32_t>::max());
  }
  GroupArea found{.pairs = static_cast<double>(positives) + static_cast<double>(negatives)};
  if (positives > 0 && negatives > 0)
    found.area = static_cast<double>(twice) / (2 * static_cast<double>(positives) * static_cast<double>(negatives));
  return found;
}

double area(const NextPair& next) {
  ScoredPair pair;
  bool more = next(pair);
  return more ? next_area(next, pair, more).area : kNone;
}

// The mean of the areas of groups, weighted by their pairs.
double mean_area(const NextPair& next) {
  ScoredPair pair;
  double sum = 0, pairs = 0;
  for (bool more = next(pair); more;) {
    const GroupArea group = next_area(next, pair, more);
    if (!group.ordered || std::isnan(pair.group)) return kNone;
    if (std::isnan(group.area)) continue;
    sum += group.area * group.pairs;
    pairs += group.pairs;
  }
  return pairs > 0 ? sum / pairs : kNone;
}

Shape with_classes(const Shape& positions, std::int64_t classes) {
  std::vector<std::int64_t> dims = positions.dims();
  dims.insert(dims.begin() + 1, classes);
  return Shape(std::move(dims));
}

}  // namespace

Metric score_by_class(ClassScore score, Value logits, Value target, ClassOptions options) {
  Metric metric = scores(name_of(score) + "_by_class", class_counts(logits, target, options.ignore_index));
  metric.rule.results = metric.sums[0].shape()[1];
  check_names(options, metric.rule.results);
  metric.rule.finish = [score](std::span<const double> counts, double /*samples*/, std::span<double> results) {
    for (std::size_t c = 0; c < results.size(); ++c) results[c] = score_at(score, counts, c);
  };
  metric.rule.names = std::move(options.names);
  return metric;
}

Metric mean_score(ClassScore score, Value logits, Value target, const ClassOptions& options) {
  Metric metric = scores("mean_" + name_of(score), class_counts(logits, target, options.ignore_index));
  metric.rule.finish = [score](std::span<const double> counts, double /*samples*/, std::span<double> results) {
    double sum = 0, classes = 0;
    for (std::size_t c = 0; c < counts.size() / 3; ++c) {
      const double one = score_at(score, counts, c);
      if (std::isnan(one)) continue;
      sum += one;
      ++classes;
    }
    results[0] = classes > 0 ? sum / classes : kNone;
  };
  return metric;
}

Metric positive_score(ClassScore score, Value logits, Value target, const ClassOptions& options) {
  Metric metric = scores(name_of(score), class_counts(logits, target, options.ignore_index));
  check(metric.sums[0].shape()[1] == 2, "metric", "{}: {} classes, expected 2; mean_score() is for more",
        metric.rule.name, metric.sums[0].shape()[1]);
  metric.rule.finish = [score](std::span<const double> counts, double /*samples*/, std::span<double> results) {
    results[0] = score_at(score, counts, 1);
  };
  return metric;
}

Metric confusion_matrix(Value logits, Value target, ClassOptions options) {
  const Value counts = confusion_counts(logits, target, options.ignore_index);
  const std::int64_t classes = counts.shape()[0];
  check_names(options, classes);
  return {.rule = {.name = "confusion",
                   .results = classes * classes,
                   .finish = [](std::span<const double> sums, double /*samples*/,
                                std::span<double> results) { std::ranges::copy(sums, results.begin()); },
                   .in_training = false,
                   .columns = classes,
                   .names = std::move(options.names)},
          .sums = {counts}};
}

Metric auc(Value logits, Value target, const ClassOptions& options) {
  Metric metric{.rule = {.name = "auc", .ranked = area, .better = Better::Higher, .in_training = false}};
  metric.rule.finish = [](std::span<const double> areas, double /*samples*/, std::span<double> results) {
    double sum = 0, lists = 0;
    for (const double one : areas) {
      if (std::isnan(one)) continue;
      sum += one;
      ++lists;
    }
    results[0] = lists > 0 ? sum / lists : kNone;
  };
  const Value wide = cast(logits, DType::F64);
  if (is_floating(target.dtype())) {
    check(logits.shape() == target.shape(), "metric", "auc: logits are {} and targets {}, expected equal shapes",
          logits.type().str(), target.type().str());
    const Shape one_list = with_classes(wide.shape(), 1);
    metric.scores = reshape(wide, one_list);
    metric.labels = reshape(cast(target, DType::F64), one_list);
    return metric;
  }
  check(logits.shape().rank() >= 2 && target.dtype() == DType::I32, "metric",
        "auc: logits are {} and targets {}, expected (samples, classes, ...) and class indices i32",
        logits.type().str(), target.type().str());
  const std::int64_t classes = logits.shape()[1];
  Value scores = wide - logsumexp(wide, 1, true);
  Value labels = one_hot_channels(target, classes, DType::F64, options.ignore_index);
  if (classes == 2) {  // one list: the odds of class 1
    scores = slice(wide, 1, 1, 1) - slice(wide, 1, 0, 1);
    labels = slice(labels, 1, 1, 1);
  }
  if (options.ignore_index) {
    const Value number = reshape(to_floating(target, DType::F64), with_classes(target.shape(), 1));
    labels = where(equal(number, static_cast<double>(*options.ignore_index)), kNone, labels);
  }
  metric.scores = scores;
  metric.labels = labels;
  return metric;
}

Metric grouped_auc(Value logits, Value target, Value group, std::string_view name) {
  check(logits.shape().rank() == 1 && logits.shape() == target.shape() && is_floating(target.dtype()) &&
            group.shape() == logits.shape(),
        "metric", "{}: logits are {}, targets {} and groups {}, expected (samples) each, and targets 0 or 1", name,
        logits.type().str(), target.type().str(), group.type().str());
  const Shape one_list{logits.shape()[0], 1};
  const auto wide = [&](Value x) {
    return reshape(is_floating(x.dtype()) ? cast(x, DType::F64) : to_floating(x, DType::F64), one_list);
  };
  Metric metric{.rule = {.name = std::string(name),
                         .finish = [](std::span<const double> sums, double /*samples*/,
                                      std::span<double> results) { results[0] = sums[0]; },
                         .ranked = mean_area,
                         .better = Better::Higher,
                         .in_training = false}};
  metric.scores = wide(logits);
  metric.labels = wide(target);
  metric.groups = wide(group);
  return metric;
}

}  // namespace lockstep::metrics
