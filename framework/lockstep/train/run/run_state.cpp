#include "lockstep/train/run/run_state.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/log.h"
#include "lockstep/train/run/resume.h"
#include "lockstep/train/run/run_metadata.h"

namespace lockstep::train {

RunState::RunState(const RunParts& run, CallbackList& callbacks, Checkpoints::Settings settings)
    : run_(run),
      callbacks_(callbacks),
      checkpoints_(run.facts.comm, run.heartbeat, run.trainer, run.files, std::move(settings)) {
  checkpoints_.save_also(run.course.stream());
}

std::optional<std::int64_t> RunState::resume(const std::string& from) {
  Resumption resumption(run_.facts, run_.files, run_.trainer, run_.course, run_.record);
  const auto step = resumption.resume(from);
  if (step) checkpoints_.found(*step, resumption.base());
  return step;
}

void RunState::load_callbacks() {
  const std::vector<std::string> notes =
      comm::collectively(run_.facts.comm, [&] { return callbacks_.load_states(run_.record.callbacks); });
  for (const std::string& note : notes) log()->info("resume: {}", note);
}

void RunState::save() {
  callbacks_.each([&](Callback& c) { c.before_checkpoint(run_.trainer.updates()); });
  if (!run_.trainer.verify()) return;  // rolled back to the previous checkpoint
  run_.files.keep();
  run_.course.gather_progress();
  run_.record.callbacks = callbacks_.save_states();
  const std::string text = metadata(run_.facts, run_.trainer, run_.course, run_.record, run_.files.run()).dump();
  const double seconds = checkpoints_.save(text, run_.record);
  callbacks_.each([&](Callback& c) { c.after_checkpoint({.step = run_.trainer.updates(), .write_seconds = seconds}); });
}

bool RunState::roll_back() {
  const comm::Communicator& comm = run_.facts.comm;
  if (checkpoints_.saved_step() < 0) return false;
  run_.heartbeat.enter(Heartbeat::Phase::Saving);
  if (!comm.is_root()) run_.heartbeat.wait();
  checkpoints_.claim();  // the writer may still write the newest checkpoint
  const auto step = resume("auto");
  if (!step) return false;
  comm::collectively(comm, [&] {
    if (comm.is_root()) run_.files.open(run_.files.folder().folder(), step);
  });
  load_callbacks();
  callbacks_.each([&](Callback& c) { c.rolled_back(*step); });
  return true;
}

}  // namespace lockstep::train
