// A metric of a model: f64 sums over samples, which a graph computes and a run adds over batches and ranks, and the
// function that turns these sums into results. So a metric is exact at any number of ranks.
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

// The part of a metric that does not depend on the graph.
struct MetricRule {
  std::string name{};        // in logs and metrics.jsonl, and of --keep best:NAME
  std::int64_t results = 1;  // number of results: 1, or one per channel, class, ...
  // Computes the results from the sums, which lie one after the other in the order of Metric::sums, and the number of
  // samples, which is not 0.
  std::function<void(std::span<const double> sums, double samples, std::span<double> results)> finish{};
  Better better = Better::Neither;
  MetricForm form = MetricForm::Number;
  bool in_training = true;  // false: computed in evaluations alone, because it costs time or its sums are many
};

struct Metric {
  MetricRule rule{};
  std::vector<Value> sums{};  // f64, of any shape; sums over the samples of the batch
};

}  // namespace lockstep
