#include "lockstep/ops/rotary.h"

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {

std::vector<Type> RotaryOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape& x = inputs[0].shape;
  const Attributes& a = attributes_;
  check(x.rank() == 4 && is_floating(inputs[0].dtype), name(),
        "{}: input is {}, expected a floating type (samples, steps, heads, width)", path, inputs[0].str());
  check(a.width >= 2 && a.width % 2 == 0 && a.width <= x[3], name(),
        "{}: {} elements of a head are turned, expected an even number from 2 to {}", path, a.width, x[3]);
  check(a.heads >= 0 && a.heads <= x[2], name(), "{}: {} heads are turned, expected at most {}", path, a.heads, x[2]);
  check(a.base > 0 && std::isfinite(a.base) && a.scale > 0 && std::isfinite(a.scale) && a.position >= 0, name(),
        "{}: base {}, scale {} and position {}, expected base and scale above 0 and a position of at least 0", path,
        a.base, a.scale, a.position);
  if (inputs.size() > 1) {
    const Type expected{Shape{x[0]}, DType::I32};
    check(inputs[1] == expected, name(), "{}: offsets are {}, expected {}", path, inputs[1].str(), expected.str());
  }
  return {inputs[0]};
}

std::vector<Value> RotaryOp::gradient(const Request& r) const {
  Attributes back = attributes_;
  back.inverse = !back.inverse;
  std::vector<Value> inputs(r.inputs.begin(), r.inputs.end());
  inputs[0] = r.gradients[0];
  std::vector<Value> result(r.inputs.size());
  result[0] = apply_op(std::make_shared<RotaryOp>(back), std::move(inputs));
  return result;
}

double RotaryOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  const Shape& x = inputs[0].shape;
  return 3.0 * static_cast<double>(x[0] * x[1] * attributes_.heads * attributes_.width);
}

std::string RotaryOp::attributes() const {
  return formatted("base {}, {} elements of {} heads{}", attributes_.base, attributes_.width, attributes_.heads,
                   attributes_.inverse ? ", back" : "");
}

Value rotary(Value x, const RotaryOptions& o) {
  check(x.shape().rank() == 4, "rotary", "{}: input is {}, expected (samples, steps, heads, width)", axes::path(x),
        x.type().str());
  const Shape shape = x.shape();
  std::vector<Value> inputs{x};
  if (o.offset) inputs.push_back(o.offset);
  return apply_op(std::make_shared<RotaryOp>(RotaryOp::Attributes{.base = o.base,
                                                                  .width = o.width != 0 ? o.width : shape[3],
                                                                  .heads = o.heads != 0 ? o.heads : shape[2],
                                                                  .neighbours = o.neighbours,
                                                                  .scale = o.scale,
                                                                  .position = o.position}),
                  std::move(inputs));
}

}  // namespace lockstep
