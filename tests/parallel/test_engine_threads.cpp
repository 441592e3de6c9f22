// BucketReducer and ControlBlock where ranks are threads of one process: flags and slots in plain memory, messages
// through queues. Each rank computes on one thread and drives from another, as with MPI_THREAD_MULTIPLE; built for
// ThreadSanitizer it shows that flags alone order what they share.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>

#include "lockstep/core/backoff.h"
#include "lockstep/parallel/control/control_block.h"
#include "lockstep/parallel/reduce/bucket_reducer.h"
#include "lockstep/parallel/reduce/progress_thread.h"

namespace lockstep {
namespace {

// Messages of all ranks, by sender, receiver and tag in the order of their sending.
class Post {
 public:
  using Key = std::tuple<int, int, int>;
  void put(const Key& key, comm::ConstBuffer data) {
    const auto* bytes = static_cast<const std::byte*>(data.data);
    const std::scoped_lock lock(mutex_);
    queues_[key].emplace_back(bytes, bytes + data.bytes());
  }
  bool take(const Key& key, comm::Buffer data) {
    const std::scoped_lock lock(mutex_);
    auto& queue = queues_[key];
    if (queue.empty()) return false;
    check(std::cmp_equal(queue.front().size(), data.bytes()), "post", "a message has {} bytes, expected {}",
          queue.front().size(), data.bytes());
    std::ranges::copy(queue.front(), static_cast<std::byte*>(data.data));
    queue.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::deque<std::vector<std::byte>>> queues_;
};

class PostTransport : public parallel::Transport {
 public:
  PostTransport(Post& post, int rank) : post_(post), rank_(rank) {}
  // Keeps nothing of the caller's: done at once.
  MessageHandle send(comm::ConstBuffer data, int rank, int tag) override {
    post_.put({rank_, rank, tag}, data);
    return -1;
  }
  // Receives of one sender and tag come in turn, so the first that is asked after is not the first to be served unless
  // it was posted first.
  MessageHandle receive(comm::Buffer data, int rank, int tag) override {
    pending_.emplace(next_, Pending{{rank, rank_, tag}, data});
    return next_++;
  }
  bool done(MessageHandle handle) override {
    if (handle < 0) return true;
    const auto found = pending_.find(handle);
    for (auto p = pending_.begin(); p != found; ++p)
      if (p->second.key == found->second.key) return false;
    if (!post_.take(found->second.key, found->second.data)) return false;
    pending_.erase(found);
    return true;
  }

 private:
  struct Pending {
    Post::Key key;
    comm::Buffer data;
  };
  Post& post_;
  int rank_;
  MessageHandle next_ = 0;
  std::map<MessageHandle, Pending> pending_;
};

constexpr int kRanks = 4;
constexpr std::int64_t kSteps = 6;
const parallel::ControlSize kControl{3, 2};
const std::vector<std::int64_t> kThreadSizes{5000, 1, 0, 3001, 1024};

// Small integers: sums are exact whatever their order, which the tests of the tree look at.
float number(std::int64_t shard, std::int64_t element, std::int64_t step) {
  return static_cast<float>((shard * 31 + element * 7 + step * 13) % 101);
}

struct Case {
  std::vector<int> domain_of;
  std::int64_t shards;
  bool everywhere;
  bool values;  // between domains
};

// The state that all ranks of the job share, though each only touches what its domain may.
struct Job {
  explicit Job(const Case& c) : setup(c) {
    for (int r = 0; r < kRanks; ++r) {
      const parallel::WorldLayout where(r, kRanks, c.shards);
      for (auto* flags : {&reducer_rows, &control_rows}) flags->push_back(allocate_aligned(kRowBytes));
      blocks.push_back(allocate_aligned(parallel::ControlBlock::bytes(where, kControl)));
      auto& of_rank = slots.emplace_back();
      for (const std::int64_t n : kThreadSizes) {
        auto& of_bucket = of_rank.emplace_back();
        for (int s = 0; s < where.my_slots(); ++s) of_bucket.emplace_back(static_cast<std::size_t>(n));
      }
      auto& value = values.emplace_back();
      // Null would say that there are none.
      for (const std::int64_t n : kThreadSizes)
        value.emplace_back(std::max<std::size_t>(1, static_cast<std::size_t>(n)));
    }
  }
  static constexpr std::size_t kRowBytes = 64 * 64;
  Case setup;
  Post gradients, control;
  std::atomic<bool> failed{false};
  std::vector<AlignedBuffer> reducer_rows, control_rows, blocks;
  std::vector<std::vector<std::vector<std::vector<float>>>> slots;  // by rank, bucket, slot
  std::vector<std::vector<std::vector<float>>> values;              // by rank (a domain's first), bucket
};

parallel::Domains domains_of(const Case& c, int rank) {
  parallel::Domains d{.rank = rank, .domain_of = c.domain_of, .members = {}};
  d.members.resize(static_cast<std::size_t>(std::ranges::max(c.domain_of)) + 1);
  for (int r = 0; r < kRanks; ++r)
    d.members[static_cast<std::size_t>(c.domain_of[static_cast<std::size_t>(r)])].push_back(r);
  return d;
}

class Rank {
 public:
  Rank(Job& job, int rank)
      : job_(job),
        where_(rank, kRanks, job.setup.shards),
        domains_(domains_of(job.setup, rank)),
        gradient_transport_(job.gradients, rank),
        control_transport_(job.control, rank),
        gradient_flags_(rows(job.reducer_rows), domains_.local_rank()),
        control_flags_(rows(job.control_rows), domains_.local_rank()),
        reducer_(gradient_transport_, gradient_flags_, domains_, where_, {.threads = false, .piece_bytes = 4096}),
        control_(control_transport_, control_flags_,
                 {job.blocks[first()].get(), parallel::ControlBlock::bytes(where_, kControl)}, domains_, where_,
                 kControl) {
    for (std::size_t b = 0; b < kThreadSizes.size(); ++b) {
      parallel::BucketMemory memory{
          .dtype = DType::F32, .elements = kThreadSizes[b], .slots = {}, .everywhere = job.setup.everywhere};
      for (int r : domains_.local()) {
        auto& of_rank = memory.slots.emplace_back();
        for (auto& slot : job.slots[static_cast<std::size_t>(r)][b]) of_rank.push_back(slot.data());
      }
      if (job.setup.values) memory.values = job.values[first()][b].data();
      reducer_.add_bucket(std::move(memory));
    }
  }

  void run() {
    parallel::ProgressThread thread([this] {
      const bool moved = control_.progress();
      return reducer_.progress() || moved;
    });
    for (std::int64_t step = 0; step < kSteps; ++step) {
      thread.wake();
      compute(step);
      for (int b = 0; b < buckets(); ++b) finish(b, step, thread);
      wait(thread, [this] { return control_.complete(); });
      check_control(step);
      for (int b = 0; b < buckets(); ++b) wait(thread, [this, b] { return reducer_.available(b); });
      check_values(step);
      thread.sleep();
    }
  }

 private:
  static int buckets() { return static_cast<int>(kThreadSizes.size()); }
  std::size_t first() const { return static_cast<std::size_t>(domains_.local()[0]); }
  std::vector<std::span<std::byte>> rows(std::vector<AlignedBuffer>& memory) const {
    std::vector<std::span<std::byte>> all;
    for (int r : domains_.local()) all.emplace_back(memory[static_cast<std::size_t>(r)].get(), Job::kRowBytes);
    return all;
  }
  std::vector<std::vector<float>>& my_slots(int b) {
    return job_.slots[static_cast<std::size_t>(where_.rank)][static_cast<std::size_t>(b)];
  }
  template <class Done>
  void wait(const parallel::ProgressThread& thread, const Done& done) const {
    for (Backoff pause; !done(); pause.pause()) {
      thread.rethrow();
      check(!job_.failed, "job", "another rank has failed");
    }
  }

  void compute(std::int64_t step) {
    control_.words()[0] = static_cast<std::uint64_t>(step);
    control_.words()[1] = static_cast<std::uint64_t>(where_.rank);
    control_.begin();
    for (parallel::ShardWalk walk(where_); !walk.done(); walk.next()) {
      for (std::size_t i = 0; i < kControl.sums; ++i)
        control_.shard()[i] = number(walk.shard(), static_cast<std::int64_t>(i), step);
      control_.end_shard();
      for (int b = 0; b < buckets(); ++b) {
        auto& slots = my_slots(b);
        auto& shard = slots[static_cast<std::size_t>(walk.slot())];
        for (std::size_t i = 0; i < shard.size(); ++i)
          shard[i] = number(walk.shard(), static_cast<std::int64_t>(i), step);
        walk.join([&](int from, int into) {
          parallel::add_into<float>(std::ssize(shard), slots[static_cast<std::size_t>(from)].data(),
                                    slots[static_cast<std::size_t>(into)].data());
        });
        if (walk.last()) reducer_.start(b);
      }
    }
  }
  float expected(std::int64_t element, std::int64_t step) const {
    float sum = 0;
    for (std::int64_t shard = 0; shard < where_.tree.shards(); ++shard) sum += number(shard, element, step);
    return sum;
  }
  // Throws, so that the other ranks do not wait for this one: ASSERT_EQ would return.
  template <class Bucket>
  static void expect_number(float found, float expected, Bucket b, std::int64_t step) {
    check(found == expected, "job", "bucket {} step {}: {}, expected {}", b, step, found, expected);
  }
  void finish(int b, std::int64_t step, const parallel::ProgressThread& thread) {
    wait(thread, [this, b] { return reducer_.reduced(b); });
    const std::vector<float>& sums = my_slots(b)[0];
    std::vector<Range> ranges(reducer_.owned(b).begin(), reducer_.owned(b).end());
    if (job_.setup.everywhere) ranges = {{0, std::ssize(sums)}};
    for (const Range range : ranges) {
      for (auto i = static_cast<std::size_t>(range.begin); std::cmp_less(i, range.end); ++i) {
        expect_number(sums[i], expected(static_cast<std::int64_t>(i), step), b, step);
        if (job_.setup.values) job_.values[first()][static_cast<std::size_t>(b)][i] = 2 * sums[i];
      }
    }
    if (job_.setup.everywhere) return;
    if (job_.setup.values) {
      reducer_.send_values(b);
      wait(thread, [this, b] { return reducer_.values_arrived(b); });
    }
    reducer_.release(b);
  }
  void check_control(std::int64_t step) {
    control_.total();
    control_.check_same(0, "the step");
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(control_.word(r, 1), static_cast<std::uint64_t>(r));
    for (std::size_t i = 0; i < kControl.sums; ++i)
      EXPECT_EQ(control_.sums()[i], expected(static_cast<std::int64_t>(i), step));
  }
  void check_values(std::int64_t step) {
    if (!job_.setup.values) return;
    for (std::size_t b = 0; b < kThreadSizes.size(); ++b) {
      const std::vector<float>& values = job_.values[first()][b];
      for (std::size_t i = 0; std::cmp_less(i, kThreadSizes[b]); ++i)
        expect_number(values[i], 2 * expected(static_cast<std::int64_t>(i), step), b, step);
    }
  }

  Job& job_;
  parallel::WorldLayout where_;
  parallel::Domains domains_;
  PostTransport gradient_transport_, control_transport_;
  parallel::SharedFlags gradient_flags_, control_flags_;
  parallel::BucketReducer reducer_;
  parallel::ControlBlock control_;
};

void run(const Case& c) {
  Job job(c);
  std::vector<std::thread> threads;
  std::deque<std::string> errors(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&job, &error = errors[static_cast<std::size_t>(r)], r] {
      try {
        Rank(job, r).run();
      } catch (const std::exception& e) {
        error = e.what();
        job.failed = true;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(EngineThreads, OneDomain) {
  for (const std::int64_t shards : {0, 9, 12}) {
    run({{0, 0, 0, 0}, shards, true, false});
    run({{0, 0, 0, 0}, shards, false, false});
  }
}

TEST(EngineThreads, DomainsExchangeMessages) {
  const std::vector<std::vector<int>> domains{{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}, {0, 1, 1, 2}, {0, 1, 2, 3}};
  for (const auto& domain_of : domains) {
    run({domain_of, 0, true, false});
    run({domain_of, 9, false, false});
    run({domain_of, 12, false, true});
  }
}

}  // namespace
}  // namespace lockstep
