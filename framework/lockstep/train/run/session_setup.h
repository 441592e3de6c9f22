// How options become the parts of a session: pure functions of options, data and ranks. Internal to train/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/catalogue.h"
#include "lockstep/data/transforms.h"
#include "lockstep/host/threads.h"
#include "lockstep/io/folder.h"
#include "lockstep/train/options/options.h"

namespace lockstep::train {

// What ranks agree on, one option a line, so that ranks which differ are told which: --output too, as a rank with
// another one would log, and look for checkpoints, in a folder of its own.
std::string options_by_line(const Options& options, std::string_view program);
// What decides in which order kernels sum: threads, instructions, BLAS; one a line.
std::string arithmetic(const host::ThreadBudget& threads);
// A data set's description, size and a hash of samples spread over it: two copies that differ are told apart.
std::string fingerprint(const data::Dataset& dataset);
// Compute threads per rank that options and environment ask for; 0: as many as it has cores.
int requested_threads(const Options& options);
// What tells this rank's sharing domain apart on its node: nothing, or the NUMA nodes it is bound to.
std::string sharing_domain(const Options& options);
// Threads of this rank, from the CPUs that it and its neighbours on the node may use. Collective.
host::ThreadBudget share_threads(const comm::Communicator& comm, const Options& options);
// How ranks and threads lie on the cores: on rank 0, all hosts in one line. Collective.
std::string placement_summary(const comm::Communicator& comm, const host::ThreadBudget& threads);
DType dtype_of(Precision precision);
// What the session's trainer is told: the options' own, and what follows from others and from the ranks. bf16 where all
// ranks have the instructions or emulation is asked for. Collective.
TrainerOptions trainer_options(const comm::Communicator& comm, const Options& options);
data::Transforms image_transforms(const Options& options, const data::DatasetPair& data, DType dtype, bool training);
// Moves checkpoints of an earlier run to checkpoints.1 and so on, all or, where it is resumed, those of later steps and
// of other runs than `run`; when nothing can hinder the new run any more. On rank 0.
void set_checkpoints_aside(const io::Folder& output, std::optional<std::int64_t> resumed_step, const std::string& run);
std::string host_list(const comm::Communicator& comm);  // "node1 (4 ranks), node2 (4 ranks)"

}  // namespace lockstep::train
