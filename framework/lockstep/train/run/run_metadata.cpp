#include "lockstep/train/run/run_metadata.h"

#include <nlohmann/json.hpp>

#include "lockstep/comm/environment.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/run/continuation.h"

namespace lockstep::train {

nlohmann::json metadata(const RunFacts& facts, const Trainer& trainer, const Course& course, const RunRecord& record,
                        const std::string& run) {
  const data::SamplerPosition at = course.position();
  const host::CpuInfo cpu = host::cpu_info();
  nlohmann::json data, samples;
  if (facts.data.train) samples = facts.data.epoch_samples();
  if (!facts.data.prediction.record.empty()) data = nlohmann::json::parse(facts.data.prediction.record);
  nlohmann::json metadata = {{"version", kMetadataVersion},
                             {"program", facts.name},
                             {"run", run},
                             {"step", trainer.updates()},
                             {"epoch", at.epoch},
                             {"offset", at.offset},
                             {"evaluation_due", record.evaluation_due},  // for the epoch that ended at this step
                             {"seed", facts.options.seed},
                             {"train_samples", samples},  // null: a stream
                             {"data", data},
                             {"global_batch", facts.global_batch()},
                             {"schedule_epochs", course.schedule_epochs()},
                             {"options", nlohmann::json::parse(canonical(facts.options, facts.program))},
                             {"ranks", facts.comm.size()},
                             {"threads", facts.threads.compute},
                             {"instructions", cpu.instructions},
                             {"blas", cpu.blas},
                             {"bits", facts.options.trainer.is_portable() ? "portable" : "fast"},
                             {"kernels", trainer.kernels()},
                             {"lockstep", LOCKSTEP_VERSION},
                             {"compiler", __VERSION__},
                             {"mpi", comm::Environment::library()},
                             {"optimizer", trainer.options().rule->name()},
                             {"evaluation", to_json(record.evaluation)},
                             {kEpochSumsKey, to_json(record.epoch)},
                             {kCallbacksKey, to_json(record.callbacks)}};
  if (course.stream() != nullptr) {
    metadata["epoch_size"] = course.epoch_size();
    metadata[kStreamKey] = to_json(course.stream()->progress());
  }
  return metadata;
}

}  // namespace lockstep::train
