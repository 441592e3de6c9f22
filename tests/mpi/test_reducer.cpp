// The reduction of a step against the canonical tree written down a second time: BucketReducer, ControlBlock and
// GradientEngine give the same bits whoever holds which leaves.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "lockstep/core/random.h"
#include "lockstep/nn/module.h"
#include "lockstep/parallel/gradient_engine.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

// Numbers of very different sizes, whose sum depends on the order of additions.
double number(std::int64_t leaf, std::int64_t element) {
  RandomStream random(mix(7, static_cast<std::uint64_t>(leaf)), static_cast<std::uint64_t>(element));
  return random.normal() * std::ldexp(1.0, static_cast<int>(random.below(24)) - 12);
}

// Node (level, index) of the tree over `leaves`, by recursion from the root.
template <class T>
T tree_value(std::int64_t leaves, int level, std::int64_t index, const std::function<T(std::int64_t)>& leaf) {
  if (level == 0) return leaf(index);
  const T left = tree_value<T>(leaves, level - 1, 2 * index, leaf);
  if (((2 * index + 1) << (level - 1)) >= leaves) return left;
  return left + tree_value<T>(leaves, level - 1, 2 * index + 1, leaf);
}

template <class T>
T expected_sum(std::int64_t leaves, std::int64_t element) {
  int levels = 0;
  while ((std::int64_t{1} << levels) < leaves) ++levels;
  return tree_value<T>(leaves, levels, 0, [&](std::int64_t leaf) { return static_cast<T>(number(leaf, element)); });
}

WorldLayout layout(std::int64_t shards) { return {world().rank(), world().size(), shards}; }

// 0 (a leaf per rank), and every number of shards from one per rank on.
std::vector<std::int64_t> shard_counts() {
  std::vector<std::int64_t> counts{0};
  for (std::int64_t s = world().size(); s <= 9; ++s) counts.push_back(s);
  return counts;
}

// Memory of one bucket's slots, filled as a rank's backward passes would: leaf after leaf, joined where the tree says.
template <class T>
struct Slots {
  std::vector<std::vector<T>> memory;

  Slots(const WorldLayout& where, std::int64_t elements)
      : memory(static_cast<std::size_t>(where.my_slots()), std::vector<T>(static_cast<std::size_t>(elements))) {}

  void fill(const WorldLayout& where, std::int64_t shift) {
    for (LeafWalk walk(where); !walk.done(); walk.next()) {
      auto& leaf = memory[static_cast<std::size_t>(walk.slot())];
      for (std::size_t i = 0; i < leaf.size(); ++i) {
        leaf[i] = static_cast<T>(number(walk.leaf(), shift + static_cast<std::int64_t>(i)));
      }
      walk.join([&](int from, int into) {
        add_into<T>(static_cast<std::int64_t>(leaf.size()), memory[static_cast<std::size_t>(from)].data(),
                    memory[static_cast<std::size_t>(into)].data());
      });
    }
  }
  std::vector<void*> addresses() {
    std::vector<void*> all;
    for (auto& slot : memory) all.push_back(slot.data());
    return all;
  }
};

template <class T>
void expect_sums(const std::vector<T>& sums, std::int64_t leaves, std::int64_t shift, const std::string& what) {
  std::int64_t wrong = 0, first = -1;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto element = static_cast<std::int64_t>(i);
    if (sums[i] == expected_sum<T>(leaves, shift + element)) continue;
    if (wrong++ == 0) first = element;
  }
  EXPECT_EQ(wrong, 0) << what << ": of " << sums.size() << " elements, the first at " << first;
}

// 0, 1, odd, fewer elements than ranks have cache lines, and more than a block of tree_sum in every slice.
const std::vector<std::int64_t> kSizes{0, 1, 17, 63, 64, 1000, 5003};

template <class T>
void check_reducer(DType dtype, std::int64_t shards) {
  const WorldLayout where = layout(shards);
  const comm::Communicator comm = world().duplicate();
  BucketReducer reducer(comm, where);
  std::vector<Slots<T>> buckets;
  for (const std::int64_t n : kSizes) buckets.emplace_back(where, n);
  for (std::size_t b = 0; b < buckets.size(); ++b)
    EXPECT_EQ(reducer.add_bucket(dtype, kSizes[b], buckets[b].addresses()), static_cast<int>(b));
  for (std::int64_t step = 0; step < 2; ++step) {  // the second step uses memory and messages of the first again
    for (auto& bucket : buckets) bucket.fill(where, 10'000 * step);
    for (std::size_t b = buckets.size(); b-- > 0;) {  // several under way at once, as backward ends them
      reducer.start(static_cast<int>(b));
      reducer.progress();
    }
    reducer.finish();
    EXPECT_TRUE(reducer.progress());
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      expect_sums(buckets[b].memory[0], where.tree.leaves(), 10'000 * step,
                  fmt::format("{} shards, bucket {}, step {}", shards, b, step));
    }
  }
}

TEST(BucketReducer, IsTheCanonicalTreeBitForBit) {
  for (const std::int64_t shards : shard_counts()) {
    check_reducer<float>(DType::F32, shards);
    check_reducer<double>(DType::F64, shards);
  }
}

TEST(BucketReducer, RefusesWhatItCannotReduce) {
  const WorldLayout where = layout(world().size() + 2);
  const comm::Communicator comm = world().duplicate();
  BucketReducer reducer(comm, where);
  EXPECT_NE(error_of([&] {
              reducer.add_bucket(DType::I64, 1, {nullptr, nullptr, nullptr, nullptr});
            }).find("expected f32 or f64"),
            std::string::npos);
  EXPECT_NE(error_of([&] { reducer.add_bucket(DType::F32, 1, {}); }).find("has 0 slots"), std::string::npos);
  if (world().size() == 1) return;
  Slots<float> slots(where, 100);
  slots.fill(where, 0);
  reducer.add_bucket(DType::F32, 100, slots.addresses());
  reducer.start(0);
  EXPECT_NE(error_of([&] { reducer.start(0); }).find("bucket 0 was started twice"), std::string::npos);
  reducer.finish();
}

TEST(ControlBlock, AddsSumsOverLeavesAndCarriesWords) {
  for (const std::int64_t shards : shard_counts()) {
    const WorldLayout where = layout(shards);
    const comm::Communicator comm = world().duplicate();
    ControlBlock block(comm, where, 5, 2);
    for (std::uint64_t step = 0; step < 2; ++step) {
      const auto shift = static_cast<std::int64_t>(100 * step);
      block.words()[0] = step;
      block.words()[1] = ~std::uint64_t{0} - static_cast<std::uint64_t>(world().rank());
      block.begin();
      const Range mine = where.my_leaves();
      for (std::int64_t leaf = mine.begin; leaf < mine.end; ++leaf) {
        for (std::int64_t i = 0; i < 5; ++i) {
          EXPECT_EQ(block.leaf()[static_cast<std::size_t>(i)], 0.0);
          block.leaf()[static_cast<std::size_t>(i)] += number(leaf, shift + i);
        }
        block.end_leaf();
      }
      block.finish();
      for (std::int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(block.sums()[static_cast<std::size_t>(i)], expected_sum<double>(where.tree.leaves(), shift + i))
            << shards << " shards";
      }
      for (int r = 0; r < world().size(); ++r)
        EXPECT_EQ(block.word(r, 1), ~std::uint64_t{0} - static_cast<std::uint64_t>(r));
      block.check_same(0, "the step");
    }
  }
}

TEST(ControlBlock, WordsThatDifferNameTheRanks) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot differ";
  const int last = world().size() - 1;
  const comm::Communicator comm = world().duplicate();
  ControlBlock block(comm, layout(0), 1, 1);
  block.words()[0] = world().rank() == last ? 41 : 40;
  block.begin();
  block.end_leaf();
  block.finish();
  const std::string error = error_of([&] { block.check_same(0, "the answer"); });
  const int other = world().rank() == last ? 0 : last;
  EXPECT_NE(error.find("the answer differs"), std::string::npos) << error;
  EXPECT_NE(error.find(fmt::format("rank {} has {}", other, other == last ? 41 : 40)), std::string::npos) << error;
  EXPECT_NE(error.find(fmt::format("rank {} has {}", world().rank(), world().rank() == last ? 41 : 40)),
            std::string::npos)
      << error;
}

// A store of parameters without a model: what the engine reduces.
struct Store {
  std::vector<Parameter> parameters;
  std::unique_ptr<ParameterStore> store;

  Store(const WorldLayout& where, DType dtype, std::int64_t bucket_bytes,
        const std::vector<std::int64_t>& sizes = {700, 1, 33, 256, 90}) {
    for (const std::int64_t n : sizes) {
      parameters.push_back({.shape = Shape{n}, .initialize = [](const Shape&, std::span<double> v, RandomStream&) {
                              std::ranges::fill(v, 0.0);
                            }});
    }
    std::vector<NamedParameter> named;
    std::map<const Parameter*, Layout> layouts;
    std::vector<const Parameter*> order;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      named.push_back({fmt::format("p{}", i), &parameters[i]});
      order.insert(order.begin(), &parameters[i]);
    }
    store = std::make_unique<ParameterStore>(
        named, ParameterStoreOptions{.dtype = dtype, .gradient_slots = where.my_slots(), .bucket_bytes = bucket_bytes});
    store->allocate(layouts, order);
  }
};

// The gradients of one leaf, its own numbers, become final in the order `parameters`.
void give_gradients(GradientEngine& engine, Store& s, std::int64_t leaf, const std::vector<std::size_t>& parameters) {
  for (const std::size_t p : parameters) {
    auto* gradient = static_cast<float*>(s.store->gradient(&s.parameters[p], engine.slot()));
    for (std::int64_t i = 0; i < s.parameters[p].shape.elements(); ++i)
      gradient[i] = static_cast<float>(number(leaf, 1000 * static_cast<std::int64_t>(p + 1) + i));
    engine.gradient_ready(&s.parameters[p]);
  }
}

// One step in which every leaf but those of `empty` has gradients, sums and statistics of its own numbers.
void run_engine(GradientEngine& engine, Store& s, const WorldLayout& where, std::int64_t empty, std::uint64_t step) {
  engine.begin_step(step, 100, 7);
  const Range mine = where.my_leaves();
  for (std::int64_t leaf = mine.begin; leaf < mine.end; ++leaf) {
    if (leaf == empty) {
      engine.sums_ready();
      engine.zero_gradients();
      engine.end_leaf();
      continue;
    }
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(kFirstCount) + 1; ++i)
      engine.leaf_sums()[static_cast<std::size_t>(i)] = number(leaf, i);
    for (std::int64_t i = 0; i < 6; ++i) engine.leaf_statistics()[static_cast<std::size_t>(i)] = number(leaf, 50 + i);
    engine.sums_ready();
    give_gradients(engine, s, leaf, {4, 3, 2, 1, 0});
    engine.end_leaf();
  }
  engine.finish_step();
}

TEST(GradientEngine, ReducesGradientsSumsAndStatisticsByTheTree) {
  for (const std::int64_t bucket_bytes : {std::int64_t{1}, std::int64_t{1200}, std::int64_t{1} << 20}) {
    for (const std::int64_t shards : shard_counts()) {
      const WorldLayout where = layout(shards);
      Store s(where, DType::F32, bucket_bytes);
      GradientEngine engine(world(), where, *s.store, 6, 1);
      const std::int64_t leaves = where.tree.leaves(), empty = leaves > 1 ? leaves - 1 : -1;
      const auto with_gap = [&]<class T>(std::int64_t element, T) {
        int levels = 0;
        while ((std::int64_t{1} << levels) < leaves) ++levels;
        return tree_value<T>(leaves, levels, 0, [&](std::int64_t leaf) {
          return leaf == empty ? T{0} : static_cast<T>(number(leaf, element));
        });
      };
      for (std::uint64_t step = 0; step < 2; ++step) {
        run_engine(engine, s, where, empty, step);
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(kFirstCount) + 1; ++i)
          EXPECT_EQ(engine.sums()[static_cast<std::size_t>(i)], with_gap(i, double{}));
        for (std::int64_t i = 0; i < 6; ++i)
          EXPECT_EQ(engine.statistics()[static_cast<std::size_t>(i)], with_gap(50 + i, double{}));
        for (std::size_t p = 0; p < s.parameters.size(); ++p) {
          const Tensor sum = s.store->read_gradient(fmt::format("p{}", p));
          for (std::int64_t i = 0; i < sum.elements(); ++i) {
            ASSERT_EQ(sum.data<float>()[static_cast<std::size_t>(i)],
                      with_gap(1000 * static_cast<std::int64_t>(p + 1) + i, float{}))
                << shards << " shards, p" << p << "[" << i << "], buckets of " << bucket_bytes << " bytes";
          }
        }
      }
    }
  }
}

// Plans of different batches may finish in other orders: here every rank in its own, rank 1 in reverse of rank 0. The
// buckets are larger than what MPI sends before it is received.
TEST(GradientEngine, RanksMayFinishBucketsInDifferentOrders) {
  const std::vector<std::int64_t> sizes{3000, 2500, 17, 3001, 1};
  for (const std::int64_t shards : shard_counts()) {
    const WorldLayout where = layout(shards);
    Store s(where, DType::F32, 1, sizes);
    ASSERT_EQ(s.store->buckets().size(), sizes.size());
    GradientEngine engine(world(), where, *s.store, 0, 1);
    for (std::uint64_t step = 0; step < 3; ++step) {
      engine.begin_step(step, 100, 7);
      const Range mine = where.my_leaves();
      for (std::int64_t leaf = mine.begin; leaf < mine.end; ++leaf) {
        engine.sums_ready();
        std::vector<std::size_t> order{0, 1, 2, 3, 4};
        if (world().rank() % 2 == 1) std::ranges::reverse(order);
        std::ranges::rotate(order, order.begin() + world().rank() / 2);
        give_gradients(engine, s, leaf, order);
        engine.end_leaf();
      }
      engine.finish_step();
      for (std::size_t p = 0; p < sizes.size(); ++p) {
        const Tensor sum = s.store->read_gradient(fmt::format("p{}", p));
        const std::vector<float> sums(sum.data<float>().begin(), sum.data<float>().end());
        expect_sums(sums, where.tree.leaves(), 1000 * static_cast<std::int64_t>(p + 1),
                    fmt::format("{} shards, p{}, step {}", shards, p, step));
      }
    }
  }
}

TEST(GradientEngine, RanksInDifferentStepsAreTold) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot differ";
  const WorldLayout where = layout(0);
  Store s(where, DType::F32, 1 << 20);
  GradientEngine engine(world(), where, *s.store, 0, 1);
  const std::string error = error_of([&] {
    engine.begin_step(3, world().is_root() ? 90 : 100, 0);
    engine.sums_ready();
    engine.zero_gradients();
    engine.end_leaf();
    engine.finish_step();
  });
  EXPECT_NE(error.find("the number of samples in the step differs"), std::string::npos) << error;
  EXPECT_NE(error.find("rank 0 has 90"), std::string::npos) << error;
  world().barrier();
}

}  // namespace
}  // namespace lockstep::test
