#include "lockstep/parallel/control/message_control.h"

#include <array>

#include "lockstep/core/backoff.h"
#include "lockstep/core/tensor.h"

namespace lockstep::parallel {

MessageControl::MessageControl(const comm::Communicator& comm, const WorldLayout& world, const ControlSize& size)
    : comm_(comm.duplicate()),
      flag_memory_(SharedFlags::bytes(ControlBlock::kFlags) + kAlignment),
      blocks_(std::make_shared<std::vector<std::byte>>(ControlBlock::bytes(world, size))),
      transport_(comm_) {
  transport_.keep(blocks_);
  void* row = flag_memory_.data();
  std::size_t room = flag_memory_.size();
  std::align(kAlignment, SharedFlags::bytes(ControlBlock::kFlags), row, room);
  const std::array<std::span<std::byte>, 1> rows{std::span(static_cast<std::byte*>(row), room)};
  flags_ = std::make_unique<SharedFlags>(rows, 0);
  block_ = std::make_unique<ControlBlock>(transport_, *flags_, *blocks_, Domains::single_ranks(world.rank, world.size),
                                          world, size);
}

void MessageControl::finish() {
  const auto is_complete = [this] {
    block_->progress();
    return block_->complete();
  };
  for (Backoff wait; !is_complete(); wait.pause()) work_();
  block_->total();
}

}  // namespace lockstep::parallel
