#include "lockstep/parallel/control/control_block.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lockstep/core/backoff.h"
#include "lockstep/core/error.h"
#include "lockstep/core/tensor.h"

namespace lockstep {
namespace {

constexpr int kTag = 0;

std::size_t words_of_all(const WorldLayout& world, const ControlSize& size) {
  std::size_t words = 0;
  for (const auto& of_rank : world.partials()) words += size.words + of_rank.size() * size.sums;
  return words;
}

}  // namespace

std::size_t ControlBlock::bytes(const WorldLayout& world, const ControlSize& size) {
  return 2 * words_of_all(world, size) * sizeof(std::uint64_t);
}

ControlBlock::ControlBlock(Transport& transport, SharedFlags& flags, std::span<std::byte> blocks,
                           const Domains& domains, const WorldLayout& world, const ControlSize& size)
    : transport_(transport),
      flags_(flags),
      domains_(domains),
      walk_(world),
      rank_(world.rank),
      size_(world.size),
      counts_(size),
      partials_(world.partials()),
      merges_(world.merges()),
      first_(static_cast<std::size_t>(world.size)),
      shared_(reinterpret_cast<std::uint64_t*>(blocks.data()), blocks.size() / sizeof(std::uint64_t)),
      my_words_(size.words),
      slots_(static_cast<std::size_t>(world.my_slots()) * size.sums),
      totals_(size.sums) {
  check(blocks.size() >= bytes(world, size), "control block", "{} bytes of memory, expected {}", blocks.size(),
        bytes(world, size));
  std::size_t at = 0, partials = 0;
  for (int d = 0; d < domains_.count(); ++d) {
    for (int r : domains_.of(d)) {
      first_[static_cast<std::size_t>(r)] = at;
      at += counts_.words + partials_[static_cast<std::size_t>(r)].size() * counts_.sums;
    }
  }
  for (const auto& of_rank : partials_) partials += of_rank.size();
  values_.resize(partials * counts_.sums);
  for (std::size_t p = 0; p < partials; ++p) operands_.push_back(values_.data() + p * counts_.sums);
}

std::span<double> ControlBlock::slot(int s) {
  return std::span(slots_).subspan(static_cast<std::size_t>(s) * counts_.sums, counts_.sums);
}

std::span<std::uint64_t> ControlBlock::block(int rank, std::uint32_t step) const {
  const std::size_t set = step % 2 * (shared_.size() / 2);
  const auto r = static_cast<std::size_t>(rank);
  return shared_.subspan(set + first_[r], counts_.words + partials_[r].size() * counts_.sums);
}

std::span<std::uint64_t> ControlBlock::blocks_of(int domain, std::uint32_t step) const {
  const std::span<std::uint64_t> first = block(domains_.of(domain).front(), step);
  const std::span<std::uint64_t> last = block(domains_.of(domain).back(), step);
  return {first.data(), last.data() + last.size()};
}

void ControlBlock::begin() {
  walk_.begin();
  std::ranges::fill(leaf(), 0.0);
}

std::span<double> ControlBlock::leaf() { return slot(walk_.slot()); }

void ControlBlock::end_leaf() {
  walk_.join([this](int from, int into) {
    add_into<double>(static_cast<std::int64_t>(counts_.sums), slot(from).data(), slot(into).data());
  });
  walk_.next();
  if (walk_.done()) {
    post();
  } else {
    std::ranges::fill(leaf(), 0.0);
  }
}

void ControlBlock::post() {
  ++step_;
  const std::span<std::uint64_t> mine = block(rank_, step_);
  std::ranges::copy(my_words_, mine.begin());
  for (std::size_t i = counts_.words; i < mine.size(); ++i) {
    mine[i] = std::bit_cast<std::uint64_t>(slots_[i - counts_.words]);
  }
  flags_.raise(kPosted, step_);
}

bool ControlBlock::progress() {
  if (domains_.local_rank() != 0) return false;
  if (!exchanging_) {
    if (!flags_.all_reached(kPosted, driven_)) return false;
    exchanging_ = true;
    for (int step = 1; step < domains_.count(); ++step) {
      const int domain = (domains_.mine() + step) % domains_.count();
      handles_.push_back(transport_.receive(blocks_of(domain, driven_), domains_.of(domain)[0], kTag));
    }
    for (int step = 1; step < domains_.count(); ++step) {
      const int domain = (domains_.mine() + step) % domains_.count();
      handles_.push_back(transport_.send(blocks_of(domains_.mine(), driven_), domains_.of(domain)[0], kTag));
    }
  }
  if (!transport_.all_done(handles_)) return false;
  exchanging_ = false;
  flags_.raise(kComplete, driven_++);
  return true;
}

std::uint64_t ControlBlock::word(int rank, std::size_t i) const { return block(rank, step_)[i]; }

std::uint64_t ControlBlock::any(std::size_t i) const {
  std::uint64_t bits = 0;
  for (int r = 0; r < size_; ++r) bits |= word(r, i);
  return bits;
}

void ControlBlock::total() {
  std::size_t to = 0;
  for (int r = 0; r < size_; ++r) {
    for (std::uint64_t word : block(r, step_).subspan(counts_.words)) values_[to++] = std::bit_cast<double>(word);
  }
  const std::array<double*, 1> out{totals_.data()};
  tree_sum<double>(operands_, merges_, static_cast<std::int64_t>(counts_.sums), out, {});
}

void ControlBlock::check_same(std::size_t i, std::string_view meaning) const {
  for (int r = 0; r < size_; ++r) {
    check(word(r, i) == word(rank_, i), "ranks", "{} differs: rank {} has {}, rank {} has {}", meaning, r, word(r, i),
          rank_, word(rank_, i));
  }
}

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

}  // namespace lockstep
