// BucketReducer against the canonical tree: the same bits whichever rank holds which shards and however ranks are
// grouped into domains, in every mode.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "lockstep/parallel/exchange/node_memory.h"
#include "lockstep/parallel/reduce/bucket_reducer.h"
#include "lockstep/parallel/reduce/progress_thread.h"
#include "tests/mpi/reduction.h"

namespace lockstep::test {
namespace {

enum class Mode : std::uint8_t { Everywhere, Owners, Values };

struct Plan {
  DType dtype;
  std::int64_t elements;
  Mode mode = Mode::Everywhere;
};

std::size_t whole_lines(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A reducer with its buckets in memory that the ranks of a domain share, filled as backward passes would.
class ReducerRig {
 public:
  ReducerRig(const parallel::Domains& domains, const parallel::WorldLayout& where,
             const parallel::ReducerOptions& options, std::vector<Plan> plans)
      : comm_(world().duplicate()),
        where_(where),
        wire_(options.wire),
        memory_(comm_, domains, true),
        transport_(comm_),
        plans_(std::move(plans)) {
    for (int r = 0; r < where.size; ++r)
      slots_ = std::max(slots_, where.tree.slots_needed(where.shards_of(r)));  // alike, so that each finds the others'
    const int flag_count = parallel::BucketReducer::flags_for(static_cast<int>(plans_.size()));
    std::size_t bytes = whole_lines(parallel::SharedFlags::bytes(flag_count)), value_bytes = 0;
    for (const Plan& p : plans_) {
      offsets_.push_back(bytes);
      bytes += static_cast<std::size_t>(slots_) * bytes_of(p);
      value_offsets_.push_back(value_bytes);
      value_bytes += bytes_of(p);
    }
    segments_ = memory_.segments(memory_.own(bytes));
    values_ = memory_.common(value_bytes);
    flags_ = std::make_unique<parallel::SharedFlags>(segments_, domains.local_rank());
    reducer_ = std::make_unique<parallel::BucketReducer>(transport_, *flags_, domains, where, options);
    for (std::size_t b = 0; b < plans_.size(); ++b) {
      EXPECT_EQ(reducer_->add_bucket({.dtype = plans_[b].dtype,
                                      .elements = plans_[b].elements,
                                      .slots = slots_of(b),
                                      .everywhere = plans_[b].mode == Mode::Everywhere,
                                      .values = plans_[b].mode == Mode::Values ? value(b) : nullptr}),
                static_cast<int>(b));
    }
  }

  parallel::BucketReducer& reducer() { return *reducer_; }
  parallel::SharedFlags& flags() { return *flags_; }
  int buckets() const { return static_cast<int>(plans_.size()); }

  // One step; `progress` is called while waiting.
  void run_step(std::int64_t step, const std::function<bool()>& progress, const std::string& what) {
    for (int b = 0; b < buckets(); ++b) {
      fill(at(b), step);
      reducer_->start(b);
      progress();
    }
    for (int b = buckets(); b-- > 0;) {
      drive(progress, [&] { return reducer_->reduced(b); });
      with_type(at(b).dtype, [&]<class T>(T) { check_sums<T>(b, step, what); });
      if (at(b).mode == Mode::Owners) reducer_->release(b);
    }
    for (int b = 0; b < buckets(); ++b) {
      if (at(b).mode != Mode::Values) continue;
      drive(progress, [&] { return reducer_->values_arrived(b); });
      reducer_->release(b);
    }
    for (int b = 0; b < buckets(); ++b) {
      drive(progress, [&] { return reducer_->available(b); });
      if (at(b).mode == Mode::Values) with_type(at(b).dtype, [&]<class T>(T) { check_values<T>(b, step, what); });
    }
  }
  void run_step(std::int64_t step, const std::string& what) {
    run_step(
        step, [this] { return reducer_->progress(); }, what);
  }

 private:
  const Plan& at(int b) const { return plans_[static_cast<std::size_t>(b)]; }
  std::size_t bytes_of(const Plan& p) const {
    return whole_lines(static_cast<std::size_t>(p.elements) * size_of(p.dtype));
  }
  void* slot(std::size_t b, int local_rank, int s) const {
    return segments_[static_cast<std::size_t>(local_rank)].data() + offsets_[b] +
           static_cast<std::size_t>(s) * bytes_of(plans_[b]);
  }
  std::vector<std::vector<void*>> slots_of(std::size_t b) const {
    std::vector<std::vector<void*>> all(segments_.size());
    for (std::size_t l = 0; l < all.size(); ++l) {
      for (int s = 0; s < slots_; ++s) all[l].push_back(slot(b, static_cast<int>(l), s));
    }
    return all;
  }
  void* value(std::size_t b) const { return values_.data() + value_offsets_[b]; }
  template <class T>
  std::span<T> sums(int b) const {
    return {static_cast<T*>(slot(static_cast<std::size_t>(b), board_rank(), 0)),
            static_cast<std::size_t>(at(b).elements)};
  }
  int board_rank() const { return memory_.domains().local_rank(); }
  std::int64_t shift(int b, std::int64_t step) const { return 100'000 * step + 7 * b; }

  void fill(const Plan& plan, std::int64_t step) {
    const int b = static_cast<int>(&plan - plans_.data());
    with_type(plan.dtype, [&]<class T>(T) {
      const auto slot_of = [&](int s) { return static_cast<T*>(slot(static_cast<std::size_t>(b), board_rank(), s)); };
      for (parallel::ShardWalk walk(where_); !walk.done(); walk.next()) {
        for (std::int64_t i = 0; i < plan.elements; ++i)
          slot_of(walk.slot())[i] = static_cast<T>(number(walk.shard(), shift(b, step) + i));
        walk.join(
            [&](int from, int into) { parallel::add_into<T>(plan.elements, slot_of(from), slot_of(into), wire_); });
      }
    });
  }
  template <class T>
  const std::vector<T>& expected(int b, std::int64_t step) const {
    return expected_sums<T>(where_.tree.shards(), wire_, shift(b, step), at(b).elements);
  }
  // The values that are there once the bucket is reduced; owners of values make theirs of it.
  template <class T>
  void check_sums(int b, std::int64_t step, const std::string& what) {
    const std::vector<T>& want = expected<T>(b, step);
    const std::string where = formatted("{}, step {}, bucket {} of {}", what, step, b, at(b).elements);
    if (at(b).mode == Mode::Everywhere) return expect_equal<T>(sums<T>(b), want, where);
    for (const Range range : reducer_->owned(b)) {
      const auto begin = static_cast<std::size_t>(range.begin), count = static_cast<std::size_t>(range.size());
      expect_equal<T>(sums<T>(b).subspan(begin, count), std::span(want).subspan(begin, count), where);
      for (std::size_t i = begin; at(b).mode == Mode::Values && i < begin + count; ++i)
        static_cast<T*>(value(static_cast<std::size_t>(b)))[i] = 3 * sums<T>(b)[i];
    }
    if (at(b).mode == Mode::Values) reducer_->send_values(b);
  }
  template <class T>
  void check_values(int b, std::int64_t step, const std::string& what) {
    std::vector<T> want = expected<T>(b, step);
    for (T& v : want) v *= 3;
    const std::span<const T> got(static_cast<const T*>(value(static_cast<std::size_t>(b))), want.size());
    expect_equal<T>(got, want, formatted("{}, step {}, values of bucket {}", what, step, b));
  }

  comm::Communicator comm_;
  parallel::WorldLayout where_;
  parallel::Wire wire_;
  parallel::NodeMemory memory_;
  parallel::CommTransport transport_;
  std::vector<Plan> plans_;
  int slots_ = 0;
  std::vector<std::size_t> offsets_, value_offsets_;
  std::vector<std::span<std::byte>> segments_;
  std::span<std::byte> values_;
  std::unique_ptr<parallel::SharedFlags> flags_;
  std::unique_ptr<parallel::BucketReducer> reducer_;
};

// 0, 1, odd, one block and a little, and many blocks in every slice; in every mode that the grouping has.
std::vector<Plan> all_plans(const parallel::Domains& domains) {
  std::vector<Plan> plans;
  for (const std::int64_t n : {0, 1, 17, 1024, 1025, 9001}) {
    plans.push_back({DType::F32, n});
    plans.push_back({DType::F64, n, Mode::Owners});
    plans.push_back({DType::F32, n, Mode::Owners});
    if (domains.count() > 1) plans.push_back({n % 2 == 0 ? DType::F32 : DType::F64, n, Mode::Values});
    if (domains.count() > 1) plans.push_back({n % 2 == 1 ? DType::F32 : DType::F64, n, Mode::Values});
  }
  plans.push_back({DType::F64, 5003});
  return plans;
}

void check_all(const parallel::ReducerOptions& options, const std::string& what) {
  for (const auto& [name, domains] : groupings()) {
    for (const std::int64_t shards : shard_counts()) {
      ReducerRig rig(domains, layout(shards), options, all_plans(domains));
      for (std::int64_t step = 0; step < 3; ++step)  // later ones use memory and messages of the first again
        rig.run_step(step, formatted("{}: {}, {} shards", what, name, shards));
      EXPECT_EQ(rig.reducer().bytes() > 0, domains.count() > 1) << name;
      EXPECT_EQ(world().allreduce(rig.reducer().traffic().sent, comm::ReduceOp::Max) > 0, domains.count() > 1) << name;
    }
  }
}

TEST(BucketReducer, IsTheCanonicalTreeBitForBit) { check_all({}, "exact"); }

// A block of 4096 bytes a piece: more pieces than lanes, and pieces in which some domain has no part.
TEST(BucketReducer, PiecesOutnumberLanes) { check_all({.piece_bytes = 4096}, "small pieces"); }

TEST(BucketReducer, NarrowWiresRoundAtEveryEdge) {
  check_all({.wire = parallel::Wire::BF16, .piece_bytes = 8192}, "bf16");
  check_all({.wire = parallel::Wire::F16}, "f16");
}

TEST(BucketReducer, TheWireMatters) {  // else the test above would prove nothing
  const std::int64_t shards = 9;
  const auto exact = expected_sums<float>(shards, parallel::Wire::Exact, 0, 100);
  EXPECT_NE(expected_sums<float>(shards, parallel::Wire::BF16, 0, 100), exact);
  EXPECT_NE(expected_sums<float>(shards, parallel::Wire::F16, 0, 100),
            expected_sums<float>(shards, parallel::Wire::BF16, 0, 100));
}

TEST(BucketReducer, AThreadMayDrive) {
  for (const auto& [name, domains] : groupings()) {
    ReducerRig rig(domains, layout(9), {.piece_bytes = 4096}, all_plans(domains));
    rig.reducer().allow_threads(false);
    parallel::ProgressThread thread([&] { return rig.reducer().progress(); });
    thread.wake();
    const auto look = [&] {
      thread.rethrow();
      return false;
    };
    for (std::int64_t step = 0; step < 3; ++step) rig.run_step(step, look, "driven by a thread: " + name);
  }
}

TEST(BucketReducer, EveryElementHasOneOwner) {
  for (const auto& [name, domains] : groupings()) {
    ReducerRig rig(domains, layout(0), {}, all_plans(domains));
    const std::vector<Plan> plans = all_plans(domains);
    for (int b = 0; b < rig.buckets(); ++b) {
      const Plan& plan = plans[static_cast<std::size_t>(b)];
      std::vector<int> in_my_domain(static_cast<std::size_t>(plan.elements)), in_all = in_my_domain;
      for (int r = 0; r < world().size(); ++r) {
        for (const Range range : rig.reducer().owned_by(b, r)) {
          EXPECT_EQ(range.begin % parallel::BucketReducer::kBlock, 0);
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            ++in_all[static_cast<std::size_t>(i)];
            if (domains.domain_of[static_cast<std::size_t>(r)] == domains.mine())
              ++in_my_domain[static_cast<std::size_t>(i)];
          }
        }
      }
      const std::vector<int>& owners = plan.mode == Mode::Values ? in_all : in_my_domain;
      EXPECT_TRUE(std::ranges::all_of(owners, [](int n) { return n == 1; })) << name << ", bucket " << b;
    }
  }
}

TEST(BucketReducer, RefusesWhatItCannotReduce) {
  ReducerRig rig(one_domain().domains, layout(2 * world().size() + 1), {}, {});
  parallel::BucketReducer& reducer = rig.reducer();
  EXPECT_NE(error_of([&] {
              reducer.add_bucket({.dtype = DType::I64, .elements = 1, .slots = {}});
            }).find("expected f32 or f64"),
            std::string::npos);
  const std::vector<std::vector<void*>> none(static_cast<std::size_t>(world().size()));
  EXPECT_NE(
      error_of([&] { reducer.add_bucket({.dtype = DType::F32, .elements = 1, .slots = none}); }).find("has 0 slots"),
      std::string::npos);
}

TEST(BucketReducer, ARankThatFailsDoesNotLeaveItsDomainWaiting) {
  if (world().size() == 1) GTEST_SKIP() << "nobody else waits";
  ReducerRig rig(one_domain().domains, layout(0), {}, {{DType::F32, 5000}});
  const int last = world().size() - 1;
  if (world().rank() == last) {
    rig.flags().fail();
  } else {
    const std::string error = error_of([&] { rig.run_step(0, "a rank fails"); });
    EXPECT_NE(error.find(formatted("local rank {} of this node has failed", last)), std::string::npos) << error;
  }
  world().barrier();
}

}  // namespace
}  // namespace lockstep::test
