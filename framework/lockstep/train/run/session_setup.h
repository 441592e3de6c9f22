// Makes the parts of a session from its options: functions of options, data and ranks. Internal to train/.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/retention.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/catalogue.h"
#include "lockstep/data/transforms.h"
#include "lockstep/host/threads.h"
#include "lockstep/io/folder.h"
#include "lockstep/train/options/options.h"

namespace lockstep::train {

// Returns the options that must be equal on all ranks, one per line, so that an error can name the one that differs. It
// includes --output: a rank with another one would log, and look for checkpoints, in another folder.
std::string options_by_line(const Options& options, std::string_view program);
// Returns the facts that determine the order of sums in kernels, one per line: threads, instructions, BLAS.
std::string arithmetic(const host::ThreadBudget& threads);
// Returns a data set's size and a hash of samples spread over it, which detects different copies.
std::string fingerprint(const data::Dataset& dataset);
// Returns the compute threads per rank that options and environment request; 0: one per core.
int requested_threads(const Options& options);
// Returns the text that identifies this rank's sharing domain on its node: empty, or the NUMA nodes to which it is
// bound.
std::string sharing_domain(const Options& options);
// Computes the threads of this rank from the CPUs that the ranks of its node may use. Collective.
host::ThreadBudget share_threads(const comm::Communicator& comm, const Options& options);
// How ranks and threads lie on the cores: on rank 0, all hosts in one line. Collective.
std::string placement_summary(const comm::Communicator& comm, const host::ThreadBudget& threads);
DType dtype_of(Precision precision);
// Makes the options of the session's trainer: the given ones, and those that follow from other options and from ranks.
// bf16 is used if all ranks have the instructions, or with bf16-emulated. Collective.
TrainerOptions trainer_options(const comm::Communicator& comm, const Options& options);
// Returns the files that --keep keeps, and which values are better for the metric that --keep names. Throws Error if
// the model has no such metric, or --patience-metric names one that it does not have.
checkpoint::Retention retention(const Options& options, std::span<const MetricRule> metrics);
// Returns whether higher values of this metric, or of the loss, are better. Throws Error with the option's name.
bool is_higher_better(std::string_view option, std::string_view metric, std::span<const MetricRule> metrics);
// Moves checkpoints of earlier runs to checkpoints.1 and so on: all of them in a new run; in a resumed run, those of
// later steps and of other runs than `run`. Call it on rank 0, after all checks of the new run have passed.
void set_checkpoints_aside(const io::Folder& output, std::optional<std::int64_t> resumed_step, const std::string& run);
std::string host_list(const comm::Communicator& comm);  // "node1 (4 ranks), node2 (4 ranks)"

}  // namespace lockstep::train
