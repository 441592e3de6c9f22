#include "lockstep/nn/layers.h"

#include "lockstep/ops/dropout.h"
#include "lockstep/ops/linear.h"

namespace lockstep::nn {
namespace {

Initializer or_default(Initializer given, std::int64_t fan_in) {
  return given ? std::move(given) : torch_default(fan_in);
}

}  // namespace

Linear::Linear(LinearConfig c)
    : weight_(add("weight", Parameter{.shape = {c.out, c.in}, .initialize = or_default(c.weight_init, c.in)})),
      bias_(c.bias ? &add("bias",
                          Parameter{.shape = {c.out}, .initialize = or_default(c.bias_init, c.in), .role = Role::Bias})
                   : nullptr) {}

Value Linear::operator()(Value x) const {
  Graph& g = x.graph();
  return linear(x, g.parameter(weight_), bias_ != nullptr ? g.parameter(*bias_) : Value());
}

Value Dropout::operator()(Value x) const { return dropout(x, probability_, path()); }

}  // namespace lockstep::nn
