// Expressions of the pointwise algebra, as loops over the axes along which their operands lie alike.
#include <array>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/format.h"
#include "lockstep/onnx/c/c_writer.h"
#include "lockstep/onnx/numbers.h"
#include "lockstep/onnx/wire.h"
#include "lockstep/ops/pointwise/pointwise_op.h"

namespace lockstep::onnx {
namespace {

using pointwise::Code;
using pointwise::Term;

std::string applied(const CNode& n, Code code, const std::array<std::string, 3>& x) {
  const auto& [a, b, c] = x;
  switch (code) {
    case Code::Copy:
      return a;
    case Code::Add:
      return formatted("{} + {}", a, b);
    case Code::Subtract:
      return formatted("{} - {}", a, b);
    case Code::Multiply:
      return formatted("{} * {}", a, b);
    case Code::Divide:
      return formatted("{} / {}", a, b);
    case Code::Maximum:
      return formatted("{} > {} || {} != {} ? {} : {}", a, b, a, a, a, b);
    case Code::Minimum:
      return formatted("{} < {} || {} != {} ? {} : {}", a, b, a, a, a, b);
    case Code::Negate:
      return formatted("-{}", a);
    case Code::Abs:
      return formatted("FABS({})", a);
    case Code::Sign:
      return formatted("(real)(({} > 0) - ({} < 0))", a, a);
    case Code::Relu:
      return formatted("{} < 0 ? 0 : {}", a, a);
    case Code::Gate:
      return formatted("{} <= 0 ? 0 : {}", a, b);
    case Code::Select:
      return formatted("{} > 0 ? {} : {}", a, b, c);
    case Code::Greater:
      return formatted("(real)({} > {})", a, b);
    case Code::GreaterEqual:
      return formatted("(real)({} >= {})", a, b);
    case Code::Equal:
      return formatted("(real)({} == {})", a, b);
    case Code::Sqrt:
      return formatted("SQRT({})", a);
    case Code::Exp:
      return formatted("EXP({})", a);
    case Code::Log:
      return formatted("LOG({})", a);
    case Code::Tanh:
      return formatted("TANH({})", a);
    case Code::Sigmoid:
      n.body.need("sigmoid");
      return formatted("sigmoid({})", a);
    case Code::Erf:
      return formatted("ERF({})", a);
    case Code::Sin:
      return formatted("SIN({})", a);
    case Code::Cos:
      return formatted("COS({})", a);
    case Code::Power:
      return formatted("POW({}, {})", a, b);
    case Code::kCount:
      break;
  }
  fail(kSite, "{}: a function with the code {} has no form in C", n.node.path, static_cast<int>(code));
}

// The strides of an operand along the axes of the result; 0 where it repeats.
Numbers strides_along(const Shape& operand, const Shape& result) {
  const Numbers own = dense_strides(operand);
  Numbers strides(static_cast<std::size_t>(result.rank()), 0);
  for (int axis = 0; axis < operand.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis + result.rank() - operand.rank());
    if (operand[axis] != 1) strides[at] = own[static_cast<std::size_t>(axis)];
  }
  return strides;
}

// Joins each axis with the one behind it where no operand needs the two apart.
void join_axes(Numbers& sizes, std::vector<Numbers>& strides) {
  for (std::size_t axis = sizes.size(); axis-- > 1;) {
    bool together = true;
    for (const Numbers& s : strides) together = together && s[axis - 1] == s[axis] * sizes[axis];
    if (!together && sizes[axis - 1] != 1) continue;
    if (sizes[axis - 1] == 1) {
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis) - 1);
      for (Numbers& s : strides) s.erase(s.begin() + static_cast<std::ptrdiff_t>(axis) - 1);
    } else {
      sizes[axis - 1] *= sizes[axis];
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis));
      for (Numbers& s : strides) {
        s[axis - 1] = s[axis];
        s.erase(s.begin() + static_cast<std::ptrdiff_t>(axis));
      }
    }
  }
}

std::string index_of(const Numbers& strides) {
  std::string index;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    if (strides[axis] == 0) continue;
    index += formatted("{}i{} * {}", index.empty() ? "" : " + ", axis, strides[axis]);
  }
  return index.empty() ? "0" : index;
}

}  // namespace

bool write_c_pointwise(const CNode& n) {
  const auto* op = dynamic_cast<const PointwiseOp*>(n.node.op.get());
  if (op == nullptr) return false;
  Numbers sizes = n.shape().dims();
  std::vector<Numbers> strides{dense_strides(n.shape())};
  for (const Type& type : n.types) strides.push_back(strides_along(type.shape, n.shape()));
  if (sizes.empty()) {
    sizes = {1};
    for (Numbers& s : strides) s = {0};
  }
  join_axes(sizes, strides);
  std::string indent;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    n.body.add(formatted("{}for (long i{} = 0; i{} < {}; ++i{}) {{", indent, axis, axis, sizes[axis], axis));
    indent += "  ";
  }
  const pointwise::Expression expression = op->expression().primitive();
  std::vector<std::string> names;
  for (const Term& term : expression.terms()) {
    if (term.kind == Term::Kind::Constant) {
      names.push_back(c_number(term.constant));
      continue;
    }
    const std::string name = formatted("t{}", names.size());
    std::string value;
    if (term.kind == Term::Kind::Input) {
      const auto k = static_cast<std::size_t>(term.input);
      value = formatted("({})[{}]", n.inputs[k], index_of(strides[k + 1]));
    } else {
      std::array<std::string, 3> operands;
      for (std::size_t k = 0; k < static_cast<std::size_t>(term.function->operands); ++k)
        operands[k] = names[static_cast<std::size_t>(term.operands[k])];
      value = applied(n, term.function->code, operands);
    }
    n.body.add(formatted("{}const real {} = {};", indent, name, value));
    names.push_back(name);
  }
  n.body.add(formatted("{}({})[{}] = {};", indent, n.outputs[0], index_of(strides[0]),
                       names[static_cast<std::size_t>(expression.result())]));
  for (std::size_t axis = sizes.size(); axis-- > 0;) n.body.add(std::string(2 * axis, ' ') + "}");
  return true;
}

}  // namespace lockstep::onnx
