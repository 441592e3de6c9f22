// Attention with and without its layer, rotary positions and the cross entropy over a vocabulary, for OperatorModel.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/nn/module.h"

namespace lockstep::parity {

using Operand = std::function<Value(const std::string& name)>;  // invalid where there is none

// The multi-head layer of a request, null for other ops; its parameters lie under "layer." in `parent`.
std::unique_ptr<nn::Module> make_attention(nn::Module* parent, const nlohmann::json& request);
// Returns what the op of the request makes of its operands, or an invalid Value if the op is not of this file. Integers
// are the batch's "index".
Value apply_attention(const nlohmann::json& request, const nn::Module* layer, const Operand& operand);

}  // namespace lockstep::parity
