#include "lockstep/train/callbacks/profile_steps.h"

#include "lockstep/core/log.h"
#include "lockstep/train/report/step_profile.h"

namespace lockstep::train {

void ProfileSteps::end_run(const RunEnd& /*end*/) {
  if (speaks_) log()->info("{}", profile_table(trainer_.profile()->result()));
}

}  // namespace lockstep::train
