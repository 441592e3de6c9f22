#include "lockstep/onnx/import/node_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/onnx/wire.h"
#include "lockstep/ops/reduce.h"

namespace lockstep::onnx {
namespace {

// The elements of a constant as numbers of another type.
template <class T>
std::vector<T> numbers_of(const Tensor& tensor) {
  std::vector<T> numbers;
  const auto copy = [&](auto values) {
    for (const auto value : values) numbers.push_back(static_cast<T>(value));
  };
  switch (tensor.dtype()) {
    case DType::F32:
      copy(tensor.data<float>());
      break;
    case DType::F64:
      copy(tensor.data<double>());
      break;
    case DType::I32:
      copy(tensor.data<std::int32_t>());
      break;
    case DType::I64:
      copy(tensor.data<std::int64_t>());
      break;
    case DType::U8:
      copy(tensor.data<std::uint8_t>());
      break;
    default:
      fail(kSite, "a constant is {}, expected f32, f64, i32, i64 or u8", name_of(tensor.dtype()));
  }
  return numbers;
}

}  // namespace

const Operand& NodeReader::operand(std::size_t i) const {
  require(has(i), formatted("input {} is missing", i));
  const auto found = tracing_.operands.find(node_.inputs[i]);
  require(found != tracing_.operands.end(),
          formatted("it reads {}, expected an input, a tensor or the output of an earlier node", node_.inputs[i]));
  return found->second;
}

Value NodeReader::value(std::size_t i) const {
  if (!has(i)) return {};
  const Operand& input = operand(i);
  if (input.value) return input.value;
  if (input.parameter != nullptr) return graph().parameter(*input.parameter);
  const auto numbers = numbers_of<double>(*input.constant);
  const bool uniform =
      !numbers.empty() && std::ranges::all_of(numbers, [&](double number) { return number == numbers.front(); });
  require(uniform, formatted("input {} is a constant of shape {} that is computed from others or of whole numbers, "
                             "expected one number in all elements",
                             node_.inputs[i], input.constant->shape().str()));
  return fill(graph(), {input.constant->shape(), graph().dtype()}, numbers.front());
}

Numbers NodeReader::wholes(std::size_t i, std::string_view what) const {
  const FileTensor tensor = operand(i).constant;
  require(tensor != nullptr, formatted("{} is known only when the model runs, expected a constant", what));
  require(!is_floating(tensor->dtype()), formatted("{} is {}, expected whole numbers", what, name_of(tensor->dtype())));
  return numbers_of<std::int64_t>(*tensor);
}

double NodeReader::real(std::size_t i, std::string_view what) const {
  const FileTensor tensor = operand(i).constant;
  require(tensor != nullptr, formatted("{} is known only when the model runs, expected a constant", what));
  require(tensor->elements() == 1, formatted("{} has the shape {}, expected one number", what, tensor->shape().str()));
  return numbers_of<double>(*tensor).front();
}

bool NodeReader::is_number(std::size_t i, double& number) const {
  const Operand& input = operand(i);
  if (input.constant == nullptr || input.parameter != nullptr || input.constant->elements() != 1) return false;
  if (input.constant->shape().rank() > 1) return false;  // its rank may be that of the result
  number = numbers_of<double>(*input.constant).front();
  return true;
}

Shape NodeReader::shape(std::size_t i) const {
  const Operand& input = operand(i);
  return input.value ? input.value.shape() : input.constant->shape();
}

const Operand* NodeReader::before(std::size_t i) const {
  return tracing_.before == nullptr ? nullptr : &tracing_.before->at(node_.inputs[i]);
}

std::int64_t NodeReader::whole_attribute(const std::string& name, std::int64_t otherwise) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? otherwise : found->second.whole;
}

double NodeReader::real_attribute(const std::string& name, double otherwise) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? otherwise : found->second.real;
}

Numbers NodeReader::wholes_attribute(const std::string& name) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? Numbers{} : found->second.wholes;
}

std::string NodeReader::text_attribute(const std::string& name, const std::string& otherwise) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? otherwise : found->second.text;
}

Numbers NodeReader::wholes_of(std::size_t i, const std::string& attribute) const {
  return has(i) ? wholes(i, attribute) : wholes_attribute(attribute);
}

bool NodeReader::is_zero(std::size_t i) const {
  const Operand& input = operand(i);
  if (input.constant == nullptr || input.parameter != nullptr) return false;
  return std::ranges::all_of(numbers_of<double>(*input.constant), [](double number) { return number == 0; });
}

void NodeReader::set(Value value, std::size_t output, std::int64_t in_front) const {
  if (in_front == 0) {
    in_front = 1;
    for (std::size_t i = 0; i < inputs(); ++i) {
      if (has(i)) in_front = std::max(in_front, operand(i).in_front);
    }
  }
  require(output < node_.outputs.size(),
          formatted("it has {} outputs, expected {} or more", node_.outputs.size(), output + 1));
  tracing_.operands.insert_or_assign(node_.outputs[output], Operand{.value = value, .in_front = in_front});
}

void NodeReader::set_constant(Tensor tensor) const {
  tracing_.operands.insert_or_assign(node_.outputs.front(),
                                     Operand{.constant = std::make_shared<const Tensor>(std::move(tensor))});
}

void NodeReader::refuse(std::string_view text) const { fail(kSite, "node {} ({}): {}", node_.name, node_.op, text); }

int axis_of(const NodeReader& reader, std::int64_t axis, int rank) {
  reader.require(axis >= -rank && axis < rank, formatted("axis {} of a value with {} dimensions", axis, rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace lockstep::onnx
