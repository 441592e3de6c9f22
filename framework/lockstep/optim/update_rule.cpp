#include "lockstep/optim/update_rule.h"

#include "lockstep/core/error.h"

namespace lockstep::optim {
namespace {

Squares refuse(const UpdateRule& rule) {
  fail("optimizer", "squares() of {}, expected a rule that uses norms", rule.name());
}

}  // namespace

Squares UpdateRule::squares(std::int64_t /*n*/, const float* /*value*/, const float* /*gradient*/,
                            std::span<float* const> /*states*/, const Rates& /*rates*/) const {
  return refuse(*this);
}
Squares UpdateRule::squares(std::int64_t /*n*/, const double* /*value*/, const double* /*gradient*/,
                            std::span<double* const> /*states*/, const Rates& /*rates*/) const {
  return refuse(*this);
}

}  // namespace lockstep::optim
