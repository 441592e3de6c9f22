// The state of all ranks' streams in a checkpoint: how many samples each rank has consumed, in its metadata, and the
// samples of the reservoirs, as tensors "reservoir/rank-0003/fields/NAME" (samples, field's dimensions ...) and
// "reservoir/rank-0003/ids" (samples). No rank holds the samples of another one: they go to rank 0 piece by piece, and
// on to the disk. A run that goes on at the same number of ranks gets back each rank's samples in their slots. At
// another one, the samples of all ranks, in the order of ranks and slots, are dealt to the new ranks in turn; a rank
// that gets more than its capacity keeps a random choice.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/data/reservoir.h"
#include "lockstep/data/stream_source.h"
#include "lockstep/io/folder.h"
#include "lockstep/io/tensor_spool.h"

namespace lockstep::train {

// The progress of all ranks, equal on all ranks.
struct StreamProgress {
  // Samples that each rank consumed, one list for each number of ranks that the run had; the last one is the present.
  std::vector<std::vector<std::int64_t>> consumed{};
  std::vector<data::Reservoir::Counts> reservoirs{};  // by present rank; empty: no reservoir

  // Returns the state for a run that goes on with `ranks` ranks; the reservoirs' counts are then those of dealt
  // samples.
  StreamProgress continued(int ranks, std::int64_t capacity) const;
  // Returns the start of a producer. Ids of present producers differ from those of earlier ones.
  data::StreamStart start(int rank) const;
};

// Writes progress as a checkpoint's metadata contain it, under kStreamKey, and reads it. Throws Error with `file` and
// the cause if the key is missing or has another form.
inline constexpr const char* kStreamKey = "stream";
nlohmann::json to_json(const StreamProgress& progress);
StreamProgress stream_progress(const nlohmann::json& metadata, const std::string& file);

// The origin of a sample in the reservoirs of a checkpoint.
struct SampleOrigin {
  std::int64_t rank = 0, slot = 0;
  bool operator==(const SampleOrigin&) const = default;
};
// Returns, by new rank, the samples that it gets, in the order of its slots: the rule above.
std::vector<std::vector<SampleOrigin>> deal(const std::vector<data::Reservoir::Counts>& saved, int ranks,
                                            std::int64_t capacity);

// The result of spool_reservoirs(), equal on all ranks but for `spool`, which rank 0 alone has.
struct Spooled {
  std::unique_ptr<io::TensorSpool> spool{};
  std::string error{};  // rank 0 could not write the samples; empty: they are written
};
// Collective. `folder` of rank 0 receives the file; other ranks pass null. `progress` is the present one.
Spooled spool_reservoirs(const comm::Communicator& comm, Heartbeat& heartbeat, const io::Folder* folder,
                         const data::Reservoir& reservoir, const StreamProgress& progress);
// Fills this rank's new reservoir from a checkpoint, whose tensors rank 0 has, by deal(). Collective; all ranks throw
// AgreedError with `file` if the tensors do not fit.
void restore_reservoir(const comm::Communicator& comm, const io::TensorSource& of_root, const StreamProgress& saved,
                       const std::string& file, data::Reservoir& reservoir);

}  // namespace lockstep::train
