// Constants, and shapes as constants.
#include <algorithm>
#include <utility>

#include "lockstep/onnx/import/node_reader.h"

namespace lockstep::onnx {
namespace {

constexpr std::int64_t kMostConstant = 1 << 20;  // elements

void read_shape(const NodeReader& r) {
  const Shape shape = r.shape(0);
  const std::int64_t rank = shape.rank();
  const auto clip = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t begin = clip(r.whole_attribute("start", 0)), end = clip(r.whole_attribute("end", rank));
  Numbers sizes;
  for (std::int64_t i = begin; i < end; ++i) sizes.push_back(shape[static_cast<int>(i)]);
  r.set_constant(Tensor::from<std::int64_t>(Shape{static_cast<std::int64_t>(sizes.size())}, sizes));
}

void read_size(const NodeReader& r) {
  const Numbers size{r.shape(0).elements()};
  r.set_constant(Tensor::from<std::int64_t>(Shape{}, size));
}

void read_constant(const NodeReader& r) {
  if (r.has_attribute("value_int")) {
    const Numbers number{r.whole_attribute("value_int", 0)};
    r.set_constant(Tensor::from<std::int64_t>(Shape{}, number));
  } else if (r.has_attribute("value_ints")) {
    const Numbers numbers = r.wholes_attribute("value_ints");
    r.set_constant(Tensor::from<std::int64_t>(Shape{static_cast<std::int64_t>(numbers.size())}, numbers));
  } else if (r.has_attribute("value_float")) {
    const double number = r.real_attribute("value_float", 0);
    r.set_constant(Tensor::from<double>(Shape{}, std::span(&number, 1)));
  } else {
    const auto value = r.node().attributes.find("value");
    r.require(value != r.node().attributes.end() && value->second.tensor != nullptr,
              "it has no value, expected one of value, value_int, value_ints and value_float");
    r.set_constant(value->second.tensor->clone());
  }
}

void read_constant_of_shape(const NodeReader& r) {
  const Numbers sizes = r.wholes(0, "the shape");
  for (const std::int64_t size : sizes) r.require(size >= 0, formatted("a size of {}, expected at least 0", size));
  const Shape shape(sizes);
  r.require(shape.elements() <= kMostConstant,
            formatted("a constant of {} elements, expected at most {}", shape.elements(), kMostConstant));
  const auto value = r.node().attributes.find("value");
  const bool given = value != r.node().attributes.end() && value->second.tensor != nullptr;
  r.require(!given || value->second.tensor->elements() == 1, "a value of several numbers, expected one");
  Tensor tensor(shape, given ? value->second.tensor->dtype() : DType::F32);
  const std::size_t width = size_of(tensor.dtype());
  for (std::size_t i = 0; given && i < tensor.bytes(); i += width)
    std::copy_n(value->second.tensor->raw(), width, tensor.raw() + i);
  r.set_constant(std::move(tensor));
}

}  // namespace

std::span<const Reading> constant_readings() {
  static const std::vector<Reading> readings{
      {"Constant", read_constant, {"value", "value_int", "value_ints", "value_float"}},
      {"ConstantOfShape", read_constant_of_shape, {"value"}},
      {"Shape", read_shape, {"start", "end"}},
      {"Size", read_size},
  };
  return readings;
}

}  // namespace lockstep::onnx
