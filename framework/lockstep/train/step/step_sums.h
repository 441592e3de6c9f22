// The sums of the control block that a step or an evaluation makes: what a run of a plan adds, and what they tell.
#pragma once

#include <span>

#include "lockstep/plan/plan.h"
#include "lockstep/train/step/prepared_model.h"
#include "lockstep/train/step/totals.h"

namespace lockstep::train {

// `sums` are as ControlSum names them, then the model's counts.
void add_sums(const plan::Plan& plan, const NominalPlan& nominal, std::int64_t samples, std::span<double> sums);
void set_totals(std::span<const double> sums, const NominalPlan& nominal, Totals& totals);

}  // namespace lockstep::train
