// Which named tensors go where in a model: everything is looked at before anything is written.
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

// Full names, in the order of the model; `unexpected` in the order given. Mismatched ones say how: "fc.weight (1000,
// 512) instead of (10, 512)".
struct LoadReport {
  std::vector<std::string> loaded, missing, unexpected, mismatched;

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // One sentence; of each kind the first ten names.
  std::string str() const;
  // Throws Error of this site, with the sentence behind the name of the file, unless it is complete.
  void require_complete(std::string_view site, const std::string& file = {}) const;
};

// A destination of a tensor in a ParameterStore: a parameter's value, or one of its optimizer states. Tied weights are
// several names of one.
struct Destination {
  std::string name;
  const Parameter* owner;
  int state;  // -1: the value
  std::function<void(const Tensor&)> write;
};

struct TensorMatch {
  LoadReport report;
  std::vector<std::pair<Destination, std::size_t>> pairs;  // and the index of its tensor; in the model's order
};

// Of tensors whose name begins with `prefix`, which is taken off. f32 and f64 fit each other; of tied weights one name
// is enough.
TensorMatch match_tensors(std::vector<Destination> destinations, std::span<const io::TensorInfo> tensors,
                          const std::string& prefix);

// Asks for the matched tensors in the order of the pairs. One that comes without memory is written by another rank that
// shares the destination.
void write_tensors(plan::ParameterStore& store, const TensorMatch& match, const io::TensorSource& source);

}  // namespace lockstep::checkpoint
