#include "lockstep/parallel/control_block.h"

#include <algorithm>
#include <bit>
#include <thread>

#include "lockstep/core/error.h"

namespace lockstep {

ControlBlock::ControlBlock(const comm::Communicator& comm, const WorldLayout& world, std::size_t sums,
                           std::size_t words)
    : comm_(comm),
      walk_(world),
      rank_(world.rank),
      size_(world.size),
      sums_(sums),
      word_count_(words),
      partials_(world.partials()),
      merges_(world.merges()) {
  std::size_t units = 0;
  for (const auto& of_rank : partials_) {
    first_.push_back(units);
    units += words + of_rank.size() * sums;
  }
  first_.push_back(units);
  blocks_.resize(units);
  slots_.resize(static_cast<std::size_t>(world.my_slots()) * sums);
  totals_.resize(sums);
  std::size_t partials = 0;
  for (const auto& of_rank : partials_) partials += of_rank.size();
  values_.resize(partials * sums);
  for (std::size_t p = 0; p < partials; ++p) operands_.push_back(values_.data() + p * sums);
}

std::span<double> ControlBlock::slot(int s) {
  return std::span(slots_).subspan(static_cast<std::size_t>(s) * sums_, sums_);
}

void ControlBlock::begin() {
  walk_.begin();
  std::ranges::fill(leaf(), 0.0);
}

std::span<double> ControlBlock::leaf() { return slot(walk_.slot()); }

void ControlBlock::end_leaf() {
  walk_.join([this](int from, int into) {
    add_into<double>(static_cast<std::int64_t>(sums_), slot(from).data(), slot(into).data());
  });
  walk_.next();
  if (walk_.done()) {
    start();
  } else {
    std::ranges::fill(leaf(), 0.0);
  }
}

std::span<std::uint64_t> ControlBlock::words_of(int rank) {
  return std::span(blocks_).subspan(first_[static_cast<std::size_t>(rank)], word_count_);
}

std::uint64_t ControlBlock::word(int rank, std::size_t i) const {
  return blocks_[first_[static_cast<std::size_t>(rank)] + i];
}

void ControlBlock::start() {
  const std::size_t mine = first_[static_cast<std::size_t>(rank_)] + word_count_;
  for (std::size_t i = 0; i < partials_[static_cast<std::size_t>(rank_)].size() * sums_; ++i) {
    blocks_[mine + i] = std::bit_cast<std::uint64_t>(slots_[i]);
  }
  const auto block = [this](int r) {
    const std::size_t begin = first_[static_cast<std::size_t>(r)], end = first_[static_cast<std::size_t>(r) + 1];
    return std::span(blocks_).subspan(begin, end - begin);
  };
  requests_.clear();
  for (int step = 1; step < size_; ++step)
    requests_.push_back(comm_.irecv(block((rank_ + step) % size_), (rank_ + step) % size_));
  for (int step = 1; step < size_; ++step) requests_.push_back(comm_.isend(block(rank_), (rank_ + step) % size_));
  active_ = true;
}

bool ControlBlock::progress() {
  if (!active_) return true;
  if (!comm::test_all(requests_)) return false;
  total();
  active_ = false;
  return true;
}

void ControlBlock::finish() {
  while (!progress()) std::this_thread::yield();
}

void ControlBlock::total() {
  std::size_t to = 0;
  for (int r = 0; r < size_; ++r) {
    const std::size_t from = first_[static_cast<std::size_t>(r)] + word_count_;
    const std::size_t end = first_[static_cast<std::size_t>(r) + 1];
    for (std::size_t i = from; i < end; ++i) values_[to++] = std::bit_cast<double>(blocks_[i]);
  }
  tree_sum<double>(operands_, merges_, static_cast<std::int64_t>(sums_), totals_.data());
}

void ControlBlock::check_same(std::size_t i, std::string_view meaning) const {
  for (int r = 0; r < size_; ++r) {
    check(word(r, i) == word(rank_, i), "ranks", "{} differs: rank {} has {}, rank {} has {}", meaning, r, word(r, i),
          rank_, word(rank_, i));
  }
}

}  // namespace lockstep
