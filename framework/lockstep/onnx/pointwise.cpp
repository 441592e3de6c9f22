// Expressions of the pointwise algebra: a node for each function of the primitive expression.
#include <array>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/onnx/node_writer.h"
#include "lockstep/ops/pointwise/pointwise_op.h"

namespace lockstep::onnx {
namespace {

using pointwise::Code;
using pointwise::Term;

// The operator that does the same; empty: there is none of one node.
std::string operator_of(Code code) {
  switch (code) {
    case Code::Copy:
      return "Identity";
    case Code::Add:
      return "Add";
    case Code::Subtract:
      return "Sub";
    case Code::Multiply:
      return "Mul";
    case Code::Divide:
      return "Div";
    case Code::Maximum:
      return "Max";
    case Code::Minimum:
      return "Min";
    case Code::Negate:
      return "Neg";
    case Code::Abs:
      return "Abs";
    case Code::Sign:
      return "Sign";
    case Code::Relu:
      return "Relu";
    case Code::Sqrt:
      return "Sqrt";
    case Code::Exp:
      return "Exp";
    case Code::Log:
      return "Log";
    case Code::Tanh:
      return "Tanh";
    case Code::Sigmoid:
      return "Sigmoid";
    case Code::Erf:
      return "Erf";
    case Code::Sin:
      return "Sin";
    case Code::Cos:
      return "Cos";
    case Code::Power:
      return "Pow";
    default:
      return "";
  }
}

// 1 where the comparison holds, else 0, in the type of the values.
std::string comparison(const NodeWriter& w, const char* op, const std::vector<std::string>& operands) {
  return w.document.add(
      "Where", {w.document.add(op, operands), w.document.scalar(1, w.dtype()), w.document.scalar(0, w.dtype())});
}

std::string apply_code(const NodeWriter& w, Code code, const std::vector<std::string>& x) {
  if (const std::string op = operator_of(code); !op.empty()) return w.document.add(op, x);
  const std::string zero = w.document.scalar(0, w.dtype());
  switch (code) {
    case Code::Gate:  // of NaN: b
      return w.document.add("Where", {w.document.add("LessOrEqual", {x[0], zero}), zero, x[1]});
    case Code::Select:
      return w.document.add("Where", {w.document.add("Greater", {x[0], zero}), x[1], x[2]});
    case Code::Greater:
      return comparison(w, "Greater", x);
    case Code::GreaterEqual:
      return comparison(w, "GreaterOrEqual", x);
    case Code::Equal:
      return comparison(w, "Equal", x);
    default:
      fail("onnx", "{}: a function with the code {} has no operator of ONNX", w.node.path, static_cast<int>(code));
  }
}

// The shape to which the inputs broadcast by themselves.
Shape common_shape(const std::vector<Type>& types) {
  std::vector<std::int64_t> dims;
  for (const Type& type : types) {
    const std::vector<std::int64_t>& other = type.shape.dims();
    if (other.size() > dims.size()) dims.insert(dims.begin(), other.size() - dims.size(), 1);
    for (std::size_t i = 0; i < other.size(); ++i) {
      std::int64_t& size = dims[dims.size() - other.size() + i];
      if (size == 1) size = other[i];
    }
  }
  return Shape(dims);
}

}  // namespace

bool write_pointwise(const NodeWriter& w) {
  const auto* op = dynamic_cast<const PointwiseOp*>(w.node.op.get());
  if (op == nullptr) return false;
  w.require(w.dtype() == DType::F32 || w.dtype() == DType::F64, "bf16");
  const pointwise::Expression expression = op->expression().primitive();
  std::vector<std::string> names;
  for (const Term& term : expression.terms()) {
    if (term.kind == Term::Kind::Input) {
      names.push_back(w.inputs[static_cast<std::size_t>(term.input)]);
    } else if (term.kind == Term::Kind::Constant) {
      names.push_back(w.document.scalar(term.constant, w.dtype()));
    } else {
      std::vector<std::string> operands;
      for (int k = 0; k < term.function->operands; ++k)
        operands.push_back(names[static_cast<std::size_t>(term.operands[static_cast<std::size_t>(k)])]);
      names.push_back(apply_code(w, term.function->code, operands));
    }
  }
  const std::string result = names[static_cast<std::size_t>(expression.result())];
  if (common_shape(w.types) == w.shape()) {
    w.document.add("Identity", {result}, {}, w.output);
  } else {
    w.document.add("Expand", {result, w.document.list(w.shape().dims())}, {}, w.output);
  }
  return true;
}

}  // namespace lockstep::onnx
