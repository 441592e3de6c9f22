#include "lockstep/parallel/guard/memory_checksums.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/nn/init.h"
#include "lockstep/parallel/guard/gradient_guard.h"

namespace lockstep {
namespace {

// Two buckets: "a" (3000 elements and, after it, "b" with 40), and "c" (1500); "frozen" has no gradient.
struct Model {
  Parameter a{.shape = Shape{3000}, .initialize = nn::normal(0, 1)},
      b{.shape = Shape{40}, .initialize = nn::constant(1)}, c{.shape = Shape{1500}, .initialize = nn::normal(0, 1)},
      frozen{.shape = Shape{5}, .initialize = nn::constant(1)};
  plan::ParameterStore store{{{"a", &a}, {"b", &b}, {"c", &c}, {"frozen", &frozen}},
                             {.optimizer_states = 1, .bucket_bytes = 4 * 3100}};
  Model() { store.allocate({}, {&a, &b, &c}); }
  std::vector<std::vector<parallel::MemoryChecksums::Part>> all() const {
    return {{{{0, 3056}, true}}, {{{0, 1504}, true}}};
  }
  float* value(std::size_t bucket) { return reinterpret_cast<float*>(store.buckets()[bucket].values); }
};

const std::vector<std::string_view> kStates{"momentum"};

TEST(MemoryChecksums, FindTheBlockThatChanged) {
  Model m;
  ASSERT_EQ(m.store.buckets().size(), 2U);
  parallel::MemoryChecksums checksums(m.store, m.all());
  checksums.record();
  EXPECT_EQ(checksums.verify(), parallel::MemoryChecksums::kNone);
  m.value(0)[2047] += 1;
  EXPECT_EQ(checksums.describe(checksums.verify(), kStates), "a [1024, 2048)");
  m.value(0)[2047] -= 1;
  m.value(0)[3010] += 1;  // in "b", which shares a block with the end of "a"
  EXPECT_EQ(checksums.describe(checksums.verify(), kStates), "a [2048, 3008), b [0, 48)");
  checksums.record();
  reinterpret_cast<float*>(m.store.buckets()[1].states[0])[1499] += 1;
  EXPECT_EQ(checksums.describe(checksums.verify(), kStates), "momentum of c [1024, 1504)");
  EXPECT_EQ(checksums.verify(0, {0, 3056}), parallel::MemoryChecksums::kNone);
  EXPECT_EQ(checksums.verify(1, {0, 1024}), parallel::MemoryChecksums::kNone);
  EXPECT_NE(checksums.verify(1, {1024, 1504}), parallel::MemoryChecksums::kNone);
}

TEST(MemoryChecksums, LookOnlyAtWhatIsTheirs) {
  Model m;
  parallel::MemoryChecksums checksums(m.store, {{{{1024, 2048}, false}}, {}});
  checksums.record();
  m.value(0)[0] += 1;
  m.value(1)[0] += 1;
  reinterpret_cast<float*>(m.store.buckets()[0].states[0])[1030] += 1;
  EXPECT_EQ(checksums.verify(), parallel::MemoryChecksums::kNone);
  m.value(0)[1024] += 1;
  EXPECT_NE(checksums.verify(), parallel::MemoryChecksums::kNone);
}

TEST(MemoryChecksums, PartsOfACopyAddUpToItsDigest) {
  Model m;
  parallel::MemoryChecksums whole(m.store, m.all()), first(m.store, {{{{0, 1024}, true}}, {{{0, 1504}, true}}}),
      second(m.store, {{{{1024, 3056}, true}}, {}});
  for (parallel::MemoryChecksums* s : {&whole, &first, &second}) s->verify();
  for (const bool states : {false, true}) EXPECT_EQ(whole.digest(states), first.digest(states) + second.digest(states));
  const std::uint64_t before = whole.digest(true), own = whole.own_digest();
  std::swap_ranges(m.value(0), m.value(0) + 1024, m.value(0) + 1024);
  whole.verify();
  EXPECT_NE(whole.digest(true), before) << "blocks that change places";
  EXPECT_EQ(whole.own_digest(), own);
  static_cast<float*>(m.store.value(&m.frozen))[2] = 3;
  whole.verify();
  EXPECT_NE(whole.own_digest(), own);
  EXPECT_EQ(whole.describe(whole.blocks() - 1, kStates), "frozen");
}

TEST(MemoryChecksums, WriteBringsABlockBack) {
  Model m;
  parallel::MemoryChecksums checksums(m.store, m.all());
  checksums.record();
  const std::span<std::byte> block = checksums.bytes(2);
  const std::vector<std::byte> content(block.begin(), block.end());
  checksums.flip(0);
  EXPECT_EQ(checksums.verify(), 0);
  m.value(0)[2050] = 9;
  checksums.write(2, content);
  EXPECT_EQ(checksums.verify(), 0) << "the first is still damaged";
  EXPECT_TRUE(std::ranges::equal(checksums.bytes(2), content));
}

std::vector<double> squares(double first, double second) { return {first, 0, 0, second, 0}; }  // blocks 0 and 3

TEST(GradientGuard, JudgesTheWholeByTheLimit) {
  Model m;
  parallel::GradientGuard guard(m.store, {.norm = 10, .warn = 0.5});
  EXPECT_EQ(guard.look(squares(9, 0), 1).level, parallel::GradientFinding::Level::Fine);
  EXPECT_EQ(guard.look(squares(36, 1), 1).level, parallel::GradientFinding::Level::Warn);
  const parallel::GradientFinding& act = guard.look(squares(100, 400), 1);
  EXPECT_EQ(act.level, parallel::GradientFinding::Level::Act);
  EXPECT_EQ(act.str(), "the gradient has norm 22.36, the limit is 10, largest in the blocks of c");
  EXPECT_EQ(guard.look(squares(100, 400), 0.1).level, parallel::GradientFinding::Level::Fine) << "of sums";
}

TEST(GradientGuard, JudgesParametersByTheirMeans) {
  Model m;
  parallel::GradientGuard guard(m.store, {.spike = 4});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(guard.look(squares(100, 1e4 * i), 1).level, parallel::GradientFinding::Level::Fine) << "no mean yet";
    guard.look(squares(100, 1), 1);
    guard.accept();
  }
  EXPECT_EQ(guard.look(squares(100, 9), 1).level, parallel::GradientFinding::Level::Warn);
  const parallel::GradientFinding& act = guard.look(squares(100, 25), 1);
  EXPECT_EQ(act.level, parallel::GradientFinding::Level::Act);
  EXPECT_EQ(act.str(), "the gradient in the blocks of c has norm 5, the limit is 4");
}

TEST(GradientGuard, NamesWhatIsNotFinite) {
  Model m;
  parallel::GradientGuard guard(m.store, {});
  const parallel::GradientFinding& finding = guard.look(squares(1, std::nan("")), 1);
  EXPECT_EQ(finding.level, parallel::GradientFinding::Level::Act);
  EXPECT_EQ(finding.str(), "the gradient of c is not finite");
}

}  // namespace
}  // namespace lockstep
