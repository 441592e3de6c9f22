// The losses that a request of check_parity.py can name.
#pragma once

#include <nlohmann/json.hpp>

#include "lockstep/ops/cross_entropy.h"
#include "lockstep/plan/trace.h"

namespace lockstep::parity {

CrossEntropyOptions loss_options(const nlohmann::json& request);
bool is_loss(const nlohmann::json& request);
// Returns the loss that "op" names, with the request's options, for this prediction and the batch's fields "target" or
// "label", "variance", and "weight" and "mask" where the request has "weighted".
Loss loss_of(const nlohmann::json& request, Value x, const plan::Inputs& in);

}  // namespace lockstep::parity
