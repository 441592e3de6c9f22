// What a checkpoint tells of its run beside tensors: where the run stands, and with what it was made. Two runs are
// compared by it before one goes on from the other's checkpoint (continuation.h).
#pragma once

#include <nlohmann/json.hpp>

#include "lockstep/train/report/run_record.h"
#include "lockstep/train/run/course.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

// `run` is the run's id.
nlohmann::json metadata(const RunFacts& facts, const Trainer& trainer, const Course& course, const RunRecord& record,
                        const std::string& run);

}  // namespace lockstep::train
