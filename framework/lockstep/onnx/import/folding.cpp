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

bool fold(const NodeReader& reader) {
  if (reader.inputs() == 0) return false;
  for (std::size_t i = 0; i < reader.inputs(); ++i) {
    // A parameter is no constant: training changes it.
    if (reader.has(i) && (reader.constant(i) == nullptr || reader.parameter(i) != nullptr)) return false;
  }
  for (const std::span<const Folding> rows : {arithmetic_foldings(), arrangement_foldings()}) {
    const auto found = std::ranges::find(rows, std::string_view(reader.node().op), &Folding::op);
    if (found == rows.end()) continue;
    found->fold(reader);
    return true;
  }
  return false;
}

}  // namespace lockstep::onnx
