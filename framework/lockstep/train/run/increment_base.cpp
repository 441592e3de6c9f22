#include "lockstep/train/run/increment_base.h"

#include <utility>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/io/verified_file.h"

namespace lockstep::train {
namespace {

// Returns whether the file of the base in `folder` has the base's hash in its header.
bool is_in_place(const checkpoint::Base& base, const io::Folder& folder) {
  const std::string name = checkpoint::name_for(base.step);
  if (!folder.has(name)) return false;
  try {
    io::FileReader reader(folder, name);
    return io::read_envelope(reader).hash == base.hash;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void IncrementBase::resumed(checkpoint::Base base) {
  base_ = std::move(base);
  pending_ = -1;
}

void IncrementBase::begin_full(std::int64_t step, std::string before) {
  base_.reset();
  pending_ = step;
  before_ = std::move(before);
}

const checkpoint::Base& IncrementBase::begin_increment() {
  check(base_.has_value(), "checkpoint", "an increment without a checkpoint that has all rows, expected find() first");
  ++base_->number;
  return *base_;
}

bool IncrementBase::find(const checkpoint::Written& written, const io::Folder& folder, std::int64_t step,
                         std::int64_t most) {
  if (pending_ >= 0 && written.step == pending_ && written.hash != before_)
    base_ = checkpoint::Base{.step = pending_, .hash = written.hash};
  pending_ = -1;
  if (!base_ || base_->number >= most || base_->step >= step) return false;
  if (is_in_place(*base_, folder)) return true;
  log()->info("checkpoint: {} is not there any more, so the next one has all rows of sparse tables again",
              (folder.path() / checkpoint::name_for(base_->step)).string());
  base_.reset();
  return false;
}

}  // namespace lockstep::train
