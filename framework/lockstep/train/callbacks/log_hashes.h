// Writes hashes of the training state, before the first update and after every `every` updates, to the run's hash log.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class LogHashes : public Callback {
 public:
  // All arguments must outlive this object; `every` 0: never.
  LogHashes(const comm::Communicator& comm, Trainer& trainer, RunFiles& files, std::int64_t every)
      : comm_(comm), trainer_(trainer), files_(files), every_(every) {}
  void begin_run(std::int64_t step) override { write(step); }
  void after_step(const StepEvent& event, Orders& /*orders*/) override { write(event.step); }

 private:
  void write(std::int64_t step);
  const comm::Communicator& comm_;
  Trainer& trainer_;
  RunFiles& files_;
  std::int64_t every_;
};

}  // namespace lockstep::train
