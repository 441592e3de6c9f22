#include "lockstep/onnx/import/folding.h"

#include <algorithm>

namespace lockstep::onnx {

List list_of(const NodeReader& r, std::size_t i) {
  r.require(r.has(i) && r.constant(i) != nullptr, formatted("input {} is missing, expected a constant", i));
  const Tensor& tensor = *r.constant(i);
  r.require(tensor.elements() <= kMostFolded,
            formatted("a constant of {} elements takes part, expected at most {} where sizes are computed",
                      tensor.elements(), kMostFolded));
  List list{.shape = tensor.shape(), .is_whole = !is_floating(tensor.dtype())};
  if (list.is_whole) {
    list.wholes = r.wholes(i, "a constant");
  } else if (tensor.dtype() == DType::F64) {
    list.reals.assign(tensor.data<double>().begin(), tensor.data<double>().end());
  } else {
    list.reals.assign(tensor.data<float>().begin(), tensor.data<float>().end());
  }
  return list;
}

namespace {

const Folding* folding_of(std::string_view op) {
  for (const std::span<const Folding> rows : {arithmetic_foldings(), arrangement_foldings()}) {
    const auto found = std::ranges::find(rows, op, &Folding::op);
    if (found != rows.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

bool is_folded(std::string_view op) { return folding_of(op) != nullptr; }

bool fold(const NodeReader& reader) {
  if (reader.inputs() == 0) return false;
  for (std::size_t i = 0; i < reader.inputs(); ++i) {
    // A parameter is no constant: training changes it.
    if (reader.has(i) && (reader.constant(i) == nullptr || reader.parameter(i) != nullptr)) return false;
  }
  const Folding* const folding = folding_of(reader.node().op);
  if (folding == nullptr) return false;
  folding->fold(reader);
  return true;
}

}  // namespace lockstep::onnx
