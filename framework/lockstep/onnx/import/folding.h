// The arithmetic with which exporters compute sizes from shapes: "view(x.size(0), -1)" in a model becomes a chain of
// Shape, Gather, Unsqueeze and Concat. Operators of constants are folded: their results are constants.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/onnx/import/node_reader.h"

namespace lockstep::onnx {

inline constexpr std::int64_t kMostFolded = 1 << 20;  // elements of a constant that is computed

// A list of numbers, whole ones or f64. Sizes are computed with such lists; no other constants are.
struct List {
  Shape shape;
  bool is_whole = true;
  Numbers wholes = {};
  std::vector<double> reals = {};

  std::size_t size() const { return is_whole ? wholes.size() : reals.size(); }
  double real(std::size_t i) const { return is_whole ? static_cast<double>(wholes[i]) : reals[i]; }
  Tensor tensor() const {
    return is_whole ? Tensor::from<std::int64_t>(shape, wholes) : Tensor::from<double>(shape, reals);
  }
};

// Returns input i of a node, a constant. Throws Error for a constant of more than kMostFolded elements.
List list_of(const NodeReader& r, std::size_t i);

// An operator, and the function that makes the constants of its results.
struct Folding {
  std::string_view op;
  void (*fold)(const NodeReader& reader);
};

std::span<const Folding> arithmetic_foldings();   // functions of elements
std::span<const Folding> arrangement_foldings();  // elements that are chosen, joined, put in another order or shape

}  // namespace lockstep::onnx
