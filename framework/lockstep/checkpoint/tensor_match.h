// Matches named tensors with their destinations in a model, before any of them is written.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/io/tensor_source.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::checkpoint {

// The result of a load: full names, in the order of the model; `unexpected` in the order of the tensors. An entry of
// `mismatched` has both shapes: "fc.weight (1000, 512) instead of (10, 512)".
struct LoadReport {
  std::vector<std::string> loaded, missing, unexpected, mismatched;

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // Returns one sentence with the first ten names of each kind.
  std::string str() const;
  // Throws Error with `site`, the name of the file and str(), unless the report is complete.
  void require_complete(std::string_view site, const std::string& file = {}) const;
};

// The destination of a tensor in a ParameterStore: a parameter's value, or one of its optimizer states. Tied weights
// have one destination per name.
struct Destination {
  std::string name;
  const Parameter* owner;
  int state;  // -1: the value
  std::function<void(const Tensor&)> write;
};

struct TensorMatch {
  LoadReport report;
  std::vector<std::pair<Destination, std::size_t>> pairs;  // each with the index of its tensor; in the model's order
};

// Matches the tensors whose name begins with `prefix`, without that prefix. f32 and f64 match each other; one name is
// enough for tied weights.
TensorMatch match_tensors(std::vector<Destination> destinations, std::span<const io::TensorInfo> tensors,
                          const std::string& prefix);

// Writes the matched tensors, in the order of the pairs. Skips a tensor without memory: another rank that shares the
// destination writes it.
void write_tensors(plan::ParameterStore& store, const TensorMatch& match, const io::TensorSource& source);

}  // namespace lockstep::checkpoint
