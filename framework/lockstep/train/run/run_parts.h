// References to the parts of a session, for functions that need several of them. Owns nothing.
#pragma once

#include "lockstep/core/heartbeat.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/report/run_record.h"
#include "lockstep/train/run/course.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

struct RunParts {
  const RunFacts& facts;
  RunFiles& files;
  Heartbeat& heartbeat;
  RunRecord& record;
  Course& course;
  Trainer& trainer;
};

}  // namespace lockstep::train
