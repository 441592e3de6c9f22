// The watchdog of ranks that stand still, in one job on one machine, with limits that a rank which moves does not reach
// on a busy machine either; and nodes that tell each other, with each rank for a node.
#include "lockstep/train/monitor/watchdog.h"

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "lockstep/core/log.h"
#include "tests/messages.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

using train::NodeHeartbeat;
using train::Watchdog;
using namespace std::chrono_literals;

constexpr double kStall = 1;  // seconds

class TextSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    text_ += std::string(message.payload.data(), message.payload.size()) + "\n";
  }
  void flush_() override {}

 private:
  std::string text_;
};

// The lines that the library logs on this rank while it lives.
class Logged {
 public:
  Logged() : previous_(install_log(std::make_shared<spdlog::logger>("test", sink_))) {}
  ~Logged() { install_log(previous_); }
  std::string text() const { return sink_->text(); }

 private:
  std::shared_ptr<TextSink> sink_ = std::make_shared<TextSink>();
  std::shared_ptr<spdlog::logger> previous_;
};

// Waits for what another thread will do; false if it never does.
bool comes(const std::function<bool()>& happened) {
  for (const auto until = std::chrono::steady_clock::now() + 150s; std::chrono::steady_clock::now() < until;
       std::this_thread::sleep_for(5ms)) {
    if (happened()) return true;
  }
  return false;
}

TEST(Watchdog, NamesTheRankThatStandsStillAndNotThoseThatWaitForIt) {
  Logged logged;
  Heartbeat heartbeat;
  const int last = world().size() - 1;
  const bool sleeps = world().rank() == last;
  {
    const Watchdog watchdog(world(), heartbeat, {.stall = kStall, .abort = 0});
    heartbeat.enter_step(7);
    heartbeat.touch_bucket(2);
    if (!sleeps) heartbeat.wait();
    // The first rank speaks for the node.
    const std::string expected = formatted("rank {} on host {} has not moved for", last, world().host());
    if (world().is_root()) {
      EXPECT_TRUE(comes([&] { return has(logged.text(), expected); })) << logged.text();
    }
    world().barrier();
    if (sleeps) {
      heartbeat.beat();
      heartbeat.wait();  // from now on all wait
    }
    if (world().is_root()) {
      EXPECT_TRUE(
          comes([&] { return has(logged.text(), formatted("rank {} on host {} moves again", last, world().host())); }));
    }
    world().barrier();
  }
  const std::string text = logged.text();
  if (world().is_root()) {
    EXPECT_TRUE(has(text, "at step 7, in the training step, at bucket 2; its process ")) << text;
    EXPECT_EQ(text.find("has not moved"), text.rfind("has not moved")) << "one rank, once:\n" << text;
  } else {
    EXPECT_EQ(text, "");
  }
}

TEST(Watchdog, EndsTheJobAfterTheSecondLimit) {
  Logged logged;
  Heartbeat heartbeat;
  std::atomic<int> ended = 0;
  {
    const Watchdog watchdog(world(), heartbeat, {.stall = kStall, .abort = 2 * kStall, .give_up = [&] { ++ended; }});
    heartbeat.enter_step(1);
    if (world().rank() != 0) heartbeat.wait();
    if (world().is_root()) {
      EXPECT_TRUE(comes([&] { return ended > 0; }));
    }
    world().barrier();
  }
  if (world().is_root()) {
    EXPECT_TRUE(has(logged.text(), "the watchdog ends the job with status 76")) << logged.text();
  } else {
    EXPECT_EQ(ended, 0) << "one rank of a node speaks";
  }
}

// The limits are over when the watchdog says that the rank waits: it would have ended the job with the same look.
TEST(Watchdog, DoesNotEndAJobThatWaitsForAProducer) {
  Logged logged;
  Heartbeat heartbeat;
  std::atomic<int> ended = 0;
  const int last = world().size() - 1;
  {
    const Watchdog watchdog(world(), heartbeat, {.stall = kStall, .abort = kStall, .give_up = [&] { ++ended; }});
    heartbeat.enter_step(4);
    heartbeat.enter(Heartbeat::Phase::Producing);
    if (world().rank() != last) {
      heartbeat.enter_step(5);
      heartbeat.wait();
    }
    if (world().is_root()) {
      const std::string expected = formatted("rank {} on host {} has waited ", last, world().host());
      EXPECT_TRUE(comes([&] { return has(logged.text(), expected); })) << logged.text();
      EXPECT_TRUE(has(logged.text(),
                      "s for samples of its stream: at step 4, waiting for samples of its stream; the run "
                      "goes on when its producer sends them"));
    }
    world().barrier();
  }
  EXPECT_EQ(ended, 0);
  EXPECT_FALSE(has(logged.text(), "has not moved")) << logged.text();
}

// On one node, and where each rank has a node of its own.
TEST(Watchdog, EndsAJobThatHasReturnedOnOneRank) {
  if (world().size() == 1) GTEST_SKIP();
  const int last = world().size() - 1;
  for (const std::string& domain : {std::string(), std::to_string(world().rank())}) {
    Logged logged;
    Heartbeat heartbeat;
    std::atomic<int> ended = 0;
    const comm::Communicator nodes = comm::Communicator::world({.sharing_domain = domain});
    {
      const Watchdog watchdog(nodes, heartbeat, {.stall = 1000, .abort = 0, .give_up = [&] { ++ended; }});
      heartbeat.enter_step(5);
      if (world().rank() == last) {
        heartbeat.enter(Heartbeat::Phase::Returned);
      } else {
        heartbeat.enter(Heartbeat::Phase::Outside);
        heartbeat.enter_step(6);
      }
      heartbeat.wait();
      const bool speaks = domain.empty() ? world().is_root() : world().rank() == last;
      if (speaks) {
        EXPECT_TRUE(comes([&] { return ended > 0; })) << logged.text();
      }
      world().barrier();
      EXPECT_EQ(ended > 0, speaks);
      const std::string other = domain.empty() ? formatted("rank 0 on host {} is at step 6", world().host())
                                               : std::string("ranks of another host go on");
      const std::string expected = formatted("the program has returned on rank {} on host {} after step 5, while {}",
                                             last, world().host(), other);
      EXPECT_EQ(has(logged.text(), expected), speaks) << logged.text();
    }
  }
}

TEST(Watchdog, SaysWhenAllWaitForEachOther) {
  if (world().size() == 1) GTEST_SKIP();
  Logged logged;
  Heartbeat heartbeat;
  {
    const Watchdog watchdog(world(), heartbeat, {.stall = kStall, .abort = 0});
    heartbeat.enter_step(3);
    heartbeat.wait();
    if (world().is_root()) {
      EXPECT_TRUE(comes([&] { return has(logged.text(), "all ranks have waited for each other"); })) << logged.text();
    }
    world().barrier();
  }
  EXPECT_FALSE(has(logged.text(), "has not moved")) << logged.text();
}

// For longer than the limits: what counts is the time since the last beat. No rank of a busy machine waits as long for
// a core.
TEST(Watchdog, IsSilentWhileRanksMove) {
  Logged logged;
  Heartbeat heartbeat;
  std::atomic<int> ended = 0;
  constexpr double kLimit = 3 * kStall;
  {
    const Watchdog watchdog(world(), heartbeat, {.stall = kLimit, .abort = kLimit, .give_up = [&] { ++ended; }});
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(1.5 * kLimit);
    bool goes_on = true;
    for (int i = 0; goes_on; ++i) {
      heartbeat.enter_step(i);
      std::this_thread::sleep_for(2ms);
      heartbeat.wait();
      goes_on = world().allreduce(std::int32_t{std::chrono::steady_clock::now() < until}, comm::ReduceOp::Max) == 1;
      heartbeat.enter(Heartbeat::Phase::Outside);
    }
  }
  EXPECT_EQ(logged.text(), "");
  EXPECT_EQ(ended, 0);
}

TEST(NodeHeartbeat, AllLearnWhoIsLast) {
  NodeHeartbeat heartbeat(world().duplicate());
  const std::uint64_t mine = 10 + static_cast<std::uint64_t>(world().rank());
  const std::uint64_t least = world().is_root() ? 11 : 10;  // of the others, or of all as the first node has it
  const std::uint64_t most = 9 + static_cast<std::uint64_t>(world().size());
  if (world().size() > 1) {
    // Until all have heard it: who has may still be asked by the others.
    bool heard = false, all_heard = false;
    for (int i = 0; i < 20000 && !all_heard; ++i) {
      heartbeat.exchange({.least = mine, .all_wait = true, .furthest = mine}, NodeHeartbeat::Clock::now());
      heard = heard ||
              (heartbeat.others().least == least && heartbeat.others().all_wait && heartbeat.others().furthest == most);
      all_heard = world().allreduce(std::int32_t{heard}, comm::ReduceOp::Min) == 1;
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_TRUE(heard);
    EXPECT_EQ(heartbeat.heard().size(), world().is_root() ? static_cast<std::size_t>(world().size() - 1) : 1U);
    world().barrier();
  }
  heartbeat.leave(100s);
  EXPECT_TRUE(heartbeat.heard().empty());
}

TEST(NodeHeartbeat, SilenceIsCounted) {
  if (world().size() == 1) GTEST_SKIP();
  NodeHeartbeat heartbeat(world().duplicate());
  const auto now = NodeHeartbeat::Clock::now();
  const int peer = world().is_root() ? 1 : 0;
  EXPECT_GT(heartbeat.silent(peer, now + 90s), 80);
  heartbeat.forgive(now + 90s);
  EXPECT_EQ(heartbeat.silent(peer, now + 90s), 0);
  heartbeat.leave(100s);
}

}  // namespace
}  // namespace lockstep::test
