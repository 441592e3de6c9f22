// A trainer of a described model on arrays of the program: what lockstep_trainer_* do, with C++ errors. Collective
// functions check the arguments of all ranks together, so a wrong one throws the same error on all ranks, before the
// step. An error in the middle of a step leaves the ranks out of step: the trainer is unusable from then on. One
// thread.
#pragma once

#include <lockstep_c.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/description.h"
#include "bindings/c/failure.h"
#include "bindings/c/inference.h"
#include "bindings/c/sample_memory.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::bindings {

class Training {
 public:
  // `weights`: the first weights, equal on all ranks; empty: at random. Collective.
  Training(comm::Communicator comm, std::shared_ptr<const DescribedModel> model,
           const std::vector<io::NamedTensor>& weights, const lockstep_trainer_options& options);

  // `result`: the program's structure, or null; it is written if its size is right, which is checked with the other
  // arguments.
  void step(const lockstep_array* input, const lockstep_array* target, double rate, lockstep_result* result);
  void evaluate(const lockstep_array* input, const lockstep_array* target, lockstep_result* result);
  // Trains drawn samples until `steps` or `seconds` are over, the callback of a rank asks for an end, or it fails,
  // which all ranks then throw.
  void replay(std::int64_t samples, std::int64_t steps, double seconds, double rate, lockstep_result* result);
  void save(const std::filesystem::path& path);
  void resume(const std::filesystem::path& path);

  // Not collective.
  double metric(const std::string& name) const;
  Inference& inference();  // with the present weights
  void remember(const lockstep_array* input, const lockstep_array* target);
  void on_step(lockstep_step_function function, void* user);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr const char* kResult = "lockstep_result";

  // Runs work that communicates. Errors that all ranks throw leave the trainer usable, others do not.
  template <class Work>
  void communicate(Work&& work) {
    try {
      std::forward<Work>(work)();
    } catch (const comm::AgreedError&) {
      throw;  // all ranks alike, and the trainer is as before
    } catch (const AgreedCodedError&) {
      throw;
    } catch (...) {
      unusable_ = current_failure(LOCKSTEP_ERROR_OTHER).text;
      throw;
    }
  }
  static void check_rate(double rate);
  static double seconds_since(Clock::time_point begin);
  void require_usable() const;
  data::Batch batch_of(const lockstep_array* input, const lockstep_array* target) const;
  data::Batch drawn(std::int64_t samples);
  data::Batch batch(Tensor inputs, Tensor targets) const;
  void begin_steps();
  lockstep_result run_step(const data::Batch& batch, double rate, Clock::time_point begin);
  Failure call_back(lockstep_result& result);
  struct ReplayedStep {
    lockstep_result result;
    double elapsed = 0;  // seconds
  };
  ReplayedStep replay_step(std::int64_t samples, double rate, Clock::time_point begin, Clock::time_point all_here);
  lockstep_result result_of(const train::Totals& totals, std::int64_t own, Clock::time_point begin) const;

  comm::Communicator comm_;
  std::shared_ptr<const DescribedModel> model_;
  std::string optimizer_;
  SampleMemory memory_;
  std::optional<train::Trainer> trainer_;  // made by the constructor, after the checks
  std::optional<Inference> inference_;     // made by the first call of inference()
  std::int64_t inferred_update_ = -1;      // whose weights inference_ has
  std::vector<train::MetricResult> metrics_;
  struct {
    lockstep_step_function function = nullptr;
    void* user = nullptr;
    bool asked_to_stop = false;  // in this call
    bool tells_others = false;   // in an earlier one, which the next step tells
  } callback_;
  // Of a step of replay(), the slowest rank's, as they were of late: the mean, and the mean distance from it. 0:
  // unknown.
  double step_seconds_ = 0, step_deviation_ = 0;
  std::string unusable_;  // the reason; empty: usable
};

// Makes a communicator from the number of MPI's Fortran interface, or LOCKSTEP_COMM_ALONE.
comm::Communicator communicator_of(std::int64_t fortran);

}  // namespace lockstep::bindings
