#include "lockstep/parallel/control/control_block.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lockstep/core/error.h"

namespace lockstep::parallel {

std::string decimal(std::uint64_t word) { return std::to_string(word); }

PartialSums::PartialSums(const WorldLayout& world, std::size_t sums) : merges_(world.merges()), totals_(sums) {
  std::size_t partials = 0;
  for (const auto& of_rank : world.partials()) partials += of_rank.size();
  values_.resize(partials * sums);
  for (std::size_t p = 0; p < partials; ++p) operands_.push_back(values_.data() + p * sums);
}

void PartialSums::append(std::span<const std::uint64_t> bits) {
  for (std::uint64_t word : bits) values_[filled_++] = std::bit_cast<double>(word);
}

void PartialSums::add_up() {
  const std::array<double*, 1> out{totals_.data()};
  tree_sum<double>(operands_, merges_, std::ssize(totals_), out, {});
}

ControlBlock::ControlBlock(Transport& transport, SharedFlags& flags, std::span<std::byte> blocks,
                           const Domains& domains, const WorldLayout& world, const ControlSize& size)
    : rank_(world.rank),
      size_(size),
      walk_(world),
      exchange_(transport, flags, domains, ControlMemory(blocks, domains, world, size)),
      sums_(world, size.sums),
      my_words_(size.words),
      slots_(static_cast<std::size_t>(world.my_slots()) * size.sums) {}

std::span<double> ControlBlock::slot(int s) {
  return std::span(slots_).subspan(static_cast<std::size_t>(s) * size_.sums, size_.sums);
}

void ControlBlock::begin() {
  walk_.begin();
  std::ranges::fill(shard(), 0.0);
}

std::span<double> ControlBlock::shard() { return slot(walk_.slot()); }

void ControlBlock::end_shard() {
  walk_.join([this](int from, int into) {
    add_into<double>(static_cast<std::int64_t>(size_.sums), slot(from).data(), slot(into).data());
  });
  walk_.next();
  if (walk_.done()) {
    post();
  } else {
    std::ranges::fill(shard(), 0.0);
  }
}

void ControlBlock::post() {
  ++step_;
  const std::span<std::uint64_t> mine = exchange_.block(rank_, step_);
  std::ranges::copy(my_words_, mine.begin());
  for (std::size_t i = size_.words; i < mine.size(); ++i)
    mine[i] = std::bit_cast<std::uint64_t>(slots_[i - size_.words]);
  exchange_.post(step_);
}

std::uint64_t ControlBlock::any(std::size_t i) const {
  std::uint64_t bits = 0;
  for (int r = 0; r < exchange_.ranks(); ++r) bits |= word(r, i);
  return bits;
}

void ControlBlock::total() {
  sums_.begin();
  for (int r = 0; r < exchange_.ranks(); ++r) sums_.append(exchange_.block(r, step_).subspan(size_.words));
  sums_.add_up();
}

void ControlBlock::check_same(std::size_t i, std::string_view meaning, WordText* text, std::string_view advice) const {
  const std::uint64_t mine = word(rank_, i);
  for (int r = 0; r < exchange_.ranks(); ++r) {
    if (word(r, i) != mine)
      fail("ranks", "{} differs: rank {} has {}, rank {} has {}{}", meaning, r, text(word(r, i)), rank_, text(mine),
           advice);
  }
}

}  // namespace lockstep::parallel
