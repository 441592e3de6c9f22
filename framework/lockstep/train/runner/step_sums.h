// Adds a plan's results to the sums of the control block, and computes totals from the sums, for steps and evaluations.
#pragma once

#include <span>
#include <vector>

#include "lockstep/plan/plan.h"
#include "lockstep/train/prepare/prepared_model.h"
#include "lockstep/train/runner/totals.h"

namespace lockstep::train {

// `sums` has the sums that ControlSum names, then the sums of metrics of this mode.
void add_sums(const plan::Plan& plan, Mode mode, std::int64_t samples, std::span<double> sums);
void set_totals(std::span<const double> sums, const NominalPlan& nominal, Mode mode, Totals& totals);
// Sets the results of metrics of pairs from the results of their lists, metric by metric.
void set_ranked(std::span<const std::vector<double>> lists, const NominalPlan& nominal, Totals& totals);

}  // namespace lockstep::train
