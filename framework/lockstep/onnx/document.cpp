#include "lockstep/onnx/document.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <span>

#include "lockstep/core/error.h"

namespace lockstep::onnx {
namespace {

constexpr std::int64_t kFileVersion = 7, kOperatorSet = 13;
static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

// TensorProto.DataType.
std::int64_t number_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return 1;
    case DType::U8:
      return 2;
    case DType::I32:
      return 6;
    case DType::I64:
      return 7;
    case DType::F64:
      return 11;
    default:
      fail(kSite, "a tensor is {}, expected f32, f64, i32, i64 or u8", name_of(dtype));
  }
}

Message attribute_message(const Attribute& attribute) {
  Message m;
  m.text(1, attribute.first);
  if (const auto* whole = std::get_if<std::int64_t>(&attribute.second)) {
    m.number(3, *whole);
    m.number(20, 2);
  } else if (const auto* real = std::get_if<double>(&attribute.second)) {
    m.single(2, static_cast<float>(*real));
    m.number(20, 1);
  } else if (const auto* wholes = std::get_if<std::vector<std::int64_t>>(&attribute.second)) {
    m.numbers(8, *wholes);
    m.number(20, 7);
  } else {
    m.text(4, std::get<std::string>(attribute.second));
    m.number(20, 3);
  }
  return m;
}

Message value_message(const std::string& name, const Type& type) {
  Message shape;
  for (const std::int64_t size : type.shape.dims()) {
    Message dimension;
    dimension.number(1, size);
    shape.message(1, dimension);
  }
  Message tensor, kind, value;
  tensor.number(1, number_of(type.dtype));
  tensor.message(2, shape);
  kind.message(1, tensor);
  value.text(1, name);
  value.message(2, kind);
  return value;
}

}  // namespace

Message tensor_message(const std::string& name, const Tensor& tensor) {
  Message m;
  m.numbers(1, tensor.shape().dims());
  m.number(2, number_of(tensor.dtype()));
  m.text(8, name);
  m.text(9, std::string_view(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()));
  return m;
}

std::string Document::fresh(std::string_view hint) {
  std::string name;
  do {
    name = fmt::format("{}.{}", hint, ++values_);
  } while (taken_.contains(name));
  return name;
}

std::string Document::add(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<Attribute>& attributes, const std::string& output) {
  std::string name = output.empty() ? fresh() : output;
  add(op, inputs, std::vector<std::string>{name}, attributes);
  return name;
}

void Document::add(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs, const std::vector<Attribute>& attributes) {
  Message node;
  for (const std::string& input : inputs) node.text(1, input);
  for (const std::string& output : outputs) node.text(2, output);
  node.text(3, fmt::format("{}/{}.{}", path_, op, ++nodes_));
  node.text(4, op);
  for (const Attribute& attribute : attributes) node.message(5, attribute_message(attribute));
  graph_.message(1, node);
}

void Document::initial(const std::string& name, const Tensor& tensor) {
  taken_.insert(name);
  graph_.message(5, tensor_message(name, tensor));
}

std::string Document::scalar(double value, DType dtype) {
  check(dtype == DType::F32 || dtype == DType::F64, kSite, "a constant is {}, expected f32 or f64", name_of(dtype));
  std::string& name = scalars_[fmt::format("{} {}", name_of(dtype), std::bit_cast<std::uint64_t>(value))];
  if (!name.empty()) return name;
  const auto single = static_cast<float>(value);
  name = constant(dtype == DType::F32 ? Tensor::from<float>(Shape{}, std::span(&single, 1))
                                      : Tensor::from<double>(Shape{}, std::span(&value, 1)));
  return name;
}

std::string Document::list(const std::vector<std::int64_t>& values) {
  return constant(Tensor::from<std::int64_t>(Shape{static_cast<std::int64_t>(values.size())}, values));
}

std::string Document::constant(const Tensor& tensor) {
  std::string name = fresh("constant");
  initial(name, tensor);
  return name;
}

void Document::input(const std::string& name, const Type& type) { graph_.message(11, value_message(name, type)); }
void Document::output(const std::string& name, const Type& type) { graph_.message(12, value_message(name, type)); }

std::string Document::finish(const std::string& name, const std::string& producer_version) const {
  Message graph = graph_, operators, model;
  graph.text(2, name);
  operators.text(1, "");
  operators.number(2, kOperatorSet);
  model.number(1, kFileVersion);
  model.text(2, "Lockstep");
  model.text(3, producer_version);
  check(graph.bytes().size() < kMostBytes - model.bytes().size() - 64, kSite,
        "the model has {} bytes, expected less than 2 GiB, the most that a file of ONNX may have",
        graph.bytes().size());
  model.message(7, graph);
  model.message(8, operators);
  return model.bytes();
}

}  // namespace lockstep::onnx
