// The metadata of a checkpoint: the position of its run, and the options, machine and libraries of the run. Before a
// run resumes from another run's checkpoint, their metadata are compared (continuation.h).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lockstep/train/report/run_record.h"
#include "lockstep/train/run/course.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

// Makes the metadata; `run` is the run's id.
nlohmann::json metadata(const RunFacts& facts, const Trainer& trainer, const Course& course, const RunRecord& record,
                        const std::string& run);

}  // namespace lockstep::train
