// Copies of parameters in memory that ranks share, and those that a rank has for itself.
#include "lockstep/plan/derived_copies.h"

#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/plan/parameter_memory.h"

namespace lockstep {
namespace {

class SharedMemory : public plan::ParameterMemory {
 public:
  explicit SharedMemory(bool fills) : fills_(fills) {}
  std::span<std::byte> common(std::size_t bytes) override {
    ++requests;
    return from_heap(bytes);
  }
  bool fills_common() const override { return fills_; }
  bool shares() const override { return true; }
  int requests = 0;

 private:
  bool fills_;
};

struct Source {
  Parameter weight{.shape = Shape{6, 4}};
  Layout plain;
  std::vector<float> values = std::vector<float>(24);
  Source() { std::iota(values.begin(), values.end(), 1.0F); }
  plan::DerivedCopies::Source get(bool in_bucket = true) const {
    return {.parameter = &weight, .dtype = DType::F32, .layout = plain, .value = values.data(), .in_bucket = in_bucket};
  }
};

float first(const plan::DerivedCopies& copies, int id) { return *static_cast<const float*>(copies.data(id)); }

TEST(DerivedCopies, OneCopyForEachForm) {
  const Source source;
  plan::ParameterMemory memory;
  plan::DerivedCopies copies(memory);
  EXPECT_EQ(copies.find(&source.weight, source.plain, DType::F32), -1);
  const int id = copies.add(source.get(), source.plain, DType::F32);
  EXPECT_EQ(copies.find(&source.weight, source.plain, DType::F32), id);
  EXPECT_EQ(copies.find(&source.weight, source.plain, DType::BF16), -1);
  EXPECT_EQ(copies.data(id), nullptr) << "before allocate()";
  copies.allocate();
  EXPECT_EQ(first(copies, id), 1);
  EXPECT_GE(copies.bytes(), 24 * sizeof(float));
}

TEST(DerivedCopies, TheFirstPlansCopiesAreSharedAndLaterOnesAreNot) {
  Source source;
  SharedMemory memory(true);
  plan::DerivedCopies copies(memory);
  const int shared = copies.add(source.get(), source.plain, DType::F32);
  copies.allocate();
  EXPECT_EQ(memory.requests, 1);
  const int own = copies.add(source.get(), source.plain, DType::BF16);
  copies.allocate();
  EXPECT_EQ(memory.requests, 1);
  ASSERT_NE(copies.data(own), nullptr);
  copies.own_are_of(7);
  EXPECT_FALSE(copies.own_stale(7));
  EXPECT_TRUE(copies.own_stale(8));
  source.values[0] = 9;
  copies.refresh(static_cast<std::size_t>(own), {0, 24});
  copies.refresh(static_cast<std::size_t>(shared), {0, 24});
  EXPECT_EQ(first(copies, shared), 9);
  const std::uint16_t before = *static_cast<const std::uint16_t*>(copies.data(own));
  copies.refresh_own(8);
  EXPECT_FALSE(copies.own_stale(8));
  EXPECT_NE(*static_cast<const std::uint16_t*>(copies.data(own)), before) << "left out by the range, written now";
}

TEST(DerivedCopies, ARankThatDoesNotFillSharedMemoryLeavesItAlone) {
  const Source source;
  SharedMemory memory(false);
  plan::DerivedCopies copies(memory);
  const int shared = copies.add(source.get(), source.plain, DType::F32);
  const int own = copies.add(source.get(false), source.plain, DType::BF16);
  copies.allocate();
  EXPECT_EQ(first(copies, shared), 0);
  EXPECT_NE(*static_cast<const std::uint16_t*>(copies.data(own)), 0) << "the copy of what is not shared is this rank's";
  EXPECT_FALSE(copies.own_stale(5)) << "the values of that parameter are not shared";
}

}  // namespace
}  // namespace lockstep
