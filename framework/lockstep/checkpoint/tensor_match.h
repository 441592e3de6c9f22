// Matches named tensors with their destinations in a model, before any of them is written.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/load_report.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::checkpoint {

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
TensorMatch match_tensors(const std::vector<Destination>& destinations, std::span<const io::TensorInfo> tensors,
                          const std::string& prefix);

// Writes the matched tensors, in the order of the pairs. Skips a tensor without memory: another rank that shares the
// destination writes it.
void write_tensors(plan::ParameterStore& store, const TensorMatch& match, const io::TensorSource& source);

}  // namespace lockstep::checkpoint
