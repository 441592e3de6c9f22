// Ops over axes, products of stacks of matrices, and norms of rows, for OperatorModel.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/nn/norms.h"

namespace lockstep::parity {

// Returns what the op of the request makes of its operands, or an invalid Value if the op is not of this file. An
// operand that is not there is an invalid Value.
Value apply_axis_operator(const nlohmann::json& request, const std::function<Value(const std::string&)>& operand);

// A module for a request of a norm, null for other ops; `shape` is the input's. Its parameters lie under "bn." in
// `parent`.
class Norm {
 public:
  virtual ~Norm() = default;
  virtual Value operator()(Value x) const = 0;
};
std::unique_ptr<Norm> make_norm(nn::Module* parent, const nlohmann::json& request, const Shape& shape);

}  // namespace lockstep::parity
