#include "lockstep/train/run/session_trainer.h"

#include <cstdint>
#include <vector>

#include "lockstep/core/log.h"
#include "lockstep/host/threads.h"
#include "lockstep/kernels/registry.h"

namespace lockstep::train {

namespace {

bool computes_in_bf16(const comm::Communicator& comm, Precision precision) {
  const bool here = host::has_bf16_instructions() && kernels::has_onednn();
  const bool everywhere = comm.allreduce(std::int64_t{here}, comm::ReduceOp::Min) == 1;
  if (precision == Precision::BF16 && !everywhere && comm.is_root()) {
    log()->warn(
        "--precision bf16: at least one rank has a processor without bf16 instructions, or a build without oneDNN, so "
        "the run trains in f32; --precision bf16-emulated computes bf16 with f32 instructions, slowly");
  }
  return precision == Precision::BF16Emulated || (precision == Precision::BF16 && everywhere);
}

}  // namespace

TrainerOptions trainer_options(const comm::Communicator& comm, const Options& options) {
  TrainerOptions trainer = options.trainer;
  trainer.global_batch = global_batch(options, comm.size());
  trainer.precision = dtype_of(options.precision);
  trainer.seed = options.seed;
  trainer.bucket_bytes = static_cast<std::int64_t>(options.bucket_mb * 1048576);
  trainer.rule = optim::make_rule(options.optimizer);
  std::vector<optim::ParameterGroup>& groups = trainer.update.groups;  // those of the user come before a program's own
  for (const auto& of_user : {rate_groups(options.tuning), decay_groups(options.tuning)})
    groups.insert(groups.begin(), of_user.begin(), of_user.end());
  trainer.parallel.late_updates = true;  // a session evaluates and saves on all ranks together
  trainer.tables.changes = options.checkpoints.full_tables_every > 1;
  trainer.compile.bf16 = computes_in_bf16(comm, options.precision);
  return trainer;
}

DType dtype_of(Precision precision) { return precision == Precision::F64 ? DType::F64 : DType::F32; }

}  // namespace lockstep::train
