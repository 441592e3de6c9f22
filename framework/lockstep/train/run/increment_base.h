// The checkpoint with all rows of sparse tables to which the run's next increments refer (checkpoint/increment.h), as
// rank 0 knows it. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/checkpoint/background_writer.h"
#include "lockstep/checkpoint/increment.h"
#include "lockstep/io/folder.h"

namespace lockstep::train {

class IncrementBase {
 public:
  // The run goes on from a checkpoint with this base: itself, with number 0, if it has all rows.
  void resumed(checkpoint::Base base);
  // A checkpoint with all rows is made, and changes are counted from there. Until its file is written there is no base.
  // `before`: the hash of the writer's last file, which may be another one of this step.
  void begin_full(std::int64_t step, std::string before);
  // Counts an increment that goes to the writer, and returns the base with its number.
  const checkpoint::Base& begin_increment();
  // Returns whether the checkpoint of `step` may be an increment: there is a base of an earlier step, in `folder` as it
  // was written, with fewer than `most` increments. `written` is the writer's last file.
  bool find(const checkpoint::Written& written, const io::Folder& folder, std::int64_t step, std::int64_t most);

 private:
  std::optional<checkpoint::Base> base_;
  std::int64_t pending_ = -1;  // step of the last begin_full(), until it is known whether its file was written
  std::string before_;         // of the last begin_full()
};

}  // namespace lockstep::train
