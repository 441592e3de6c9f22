// A metric of a model: f64 sums over samples, which a graph computes and a run adds over batches and ranks, and the
// function that turns these sums into results. So a metric is exact at any number of ranks. A number that no sums
// give, such as AUC, comes from pairs of score and label, which an evaluation merges over all ranks in order of scores.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/graph/value.h"

namespace lockstep {

enum class Better : std::uint8_t { Neither, Lower, Higher };

// How results are printed: as numbers, or as hundredths with a % sign.
enum class MetricForm : std::uint8_t { Number, Percent };

struct ScoredPair {
  double score = 0, label = 0;
  double group = 0;  // of the sample: a user, for instance
};
// Gives the next pair of a list; false after the last one. Pairs come in the order of their groups, those of a group in
// the order of their scores, and those of equal scores in the order of their labels; numbers that are NaN come last.
using NextPair = std::function<bool(ScoredPair& pair)>;

// The part of a metric that does not depend on the graph.
struct MetricRule {
  std::string name{};        // in logs and metrics.jsonl, and of --keep best:NAME
  std::int64_t results = 1;  // number of results: 1, or one per channel, class, ...
  // Computes the results from the sums, which lie one after the other in the order of Metric::sums, and the number of
  // samples, which is not 0. Of a metric of pairs, the sums are one result of `ranked` per list.
  std::function<void(std::span<const double> sums, double samples, std::span<double> results)> finish{};
  // Computes one number from all pairs of a list, on one rank. It may return before the last pair.
  std::function<double(const NextPair& next)> ranked{};
  Better better = Better::Neither;
  MetricForm form = MetricForm::Number;
  bool in_training = true;           // false: computed in evaluations alone, because it costs time or its sums are many
  std::int64_t columns = 0;          // results are a table with so many columns, row by row; 0: they are a list
  std::vector<std::string> names{};  // of the list's results, or of the rows and columns; empty: their numbers
};

struct Metric {
  MetricRule rule{};
  std::vector<Value> sums{};  // f64, of any shape; sums over the samples of the batch
  // In place of sums: f64 (samples, lists, ...), of one shape. A pair whose label is NaN is left out. An evaluation
  // keeps 24 bytes for each element of this rank's samples. Without `groups` all pairs are of group 0.
  Value scores{}, labels{}, groups{};
};

}  // namespace lockstep
