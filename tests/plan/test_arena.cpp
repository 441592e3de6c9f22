#include "lockstep/plan/arena.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/core/random.h"

namespace lockstep {
namespace {

std::size_t assign(std::vector<plan::Lifetime>& lifetimes) {
  std::vector<plan::Lifetime*> pointers;
  for (plan::Lifetime& l : lifetimes) pointers.push_back(&l);
  return plan::assign_offsets(std::move(pointers));
}

bool overlap_in_time(const plan::Lifetime& a, const plan::Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}
bool overlap_in_memory(const plan::Lifetime& a, const plan::Lifetime& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

TEST(AssignOffsets, NothingAliveAtOnceOverlaps) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    RandomStream random(round, 1);
    std::vector<plan::Lifetime> lifetimes(1 + random.below(60));
    std::vector<std::size_t> wanted;
    for (plan::Lifetime& l : lifetimes) {
      l.bytes = 1 + random.below(5000);
      l.first = static_cast<int>(random.below(40));
      l.last = l.first + static_cast<int>(random.below(15));
      wanted.push_back(l.bytes);
    }
    const std::size_t total = assign(lifetimes);
    std::size_t peak = 0;
    for (int step = 0; step < 60; ++step) {
      std::size_t alive = 0;
      for (const plan::Lifetime& l : lifetimes) alive += l.first <= step && step <= l.last ? l.bytes : 0;
      peak = std::max(peak, alive);
    }
    EXPECT_GE(total, peak);
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
      EXPECT_EQ(lifetimes[i].offset % kAlignment, 0u);
      EXPECT_GE(lifetimes[i].bytes, wanted[i]);
      EXPECT_LE(lifetimes[i].offset + lifetimes[i].bytes, total);
      for (std::size_t j = 0; j < i; ++j) {
        ASSERT_FALSE(overlap_in_time(lifetimes[i], lifetimes[j]) && overlap_in_memory(lifetimes[i], lifetimes[j]))
            << "round " << round << ": " << i << " and " << j;
      }
    }
  }
}

TEST(AssignOffsets, FindsTheLeastMemoryWhereThatIsPlain) {
  std::vector<plan::Lifetime> one_after_the_other{{640, 0, 1}, {640, 2, 3}, {640, 4, 5}};
  EXPECT_EQ(assign(one_after_the_other), 640u);

  std::vector<plan::Lifetime> a_chain{{640, 0, 1}, {640, 1, 2}, {640, 2, 3}, {640, 3, 4}};  // two alive at any time
  EXPECT_EQ(assign(a_chain), 1280u);

  std::vector<plan::Lifetime> all_at_once{{64, 0, 9}, {128, 0, 9}, {192, 0, 9}};
  EXPECT_EQ(assign(all_at_once), 384u);

  std::vector<plan::Lifetime> a_skip_connection{{1024, 0, 5}, {256, 1, 2}, {256, 2, 3}, {256, 3, 4}};
  EXPECT_EQ(assign(a_skip_connection), 1536u);

  std::vector<plan::Lifetime> small_ones_in_the_place_of_a_large_one{{1024, 0, 1}, {512, 2, 3}, {512, 2, 3}};
  EXPECT_EQ(assign(small_ones_in_the_place_of_a_large_one), 1024u);
}

TEST(AssignOffsets, InclusiveLifetimesThatTouchShareAStep) {
  std::vector<plan::Lifetime> touching{{64, 0, 3}, {64, 3, 4}};
  EXPECT_EQ(assign(touching), 128u);
}

TEST(AssignOffsets, NothingTakesNothing) {
  std::vector<plan::Lifetime> none;
  EXPECT_EQ(assign(none), 0u);
}

TEST(Arena, GrowsAndSaysSo) {
  plan::Arena arena;
  EXPECT_EQ(arena.bytes(), 0u);
  arena.reserve(1000);
  const int generation = arena.generation();
  const std::byte* data = arena.data();
  arena.reserve(500);
  EXPECT_EQ(arena.generation(), generation);
  EXPECT_EQ(arena.data(), data);
  EXPECT_EQ(arena.bytes(), 1000u);
  arena.reserve(5000);
  EXPECT_NE(arena.generation(), generation);
  EXPECT_EQ(arena.bytes(), 5000u);
}

}  // namespace
}  // namespace lockstep
