#include "lockstep/preflight/look.h"

#include <array>
#include <barrier>
#include <thread>

#include "lockstep/core/error.h"
#include "tests/preflight/support.h"

namespace lockstep::test {
namespace {

using namespace preflight;

constexpr int kRanks = 3;

// Ranks that are threads of this process.
struct Board {
  std::barrier<> together{kRanks};
  std::array<std::string, kRanks> texts{};
};

class ThreadExchange : public Exchange {
 public:
  ThreadExchange(Board& board, int rank) : board_(board), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return kRanks; }
  std::vector<std::string> allgather(const std::string& mine) override {
    board_.texts[static_cast<std::size_t>(rank_)] = mine;
    board_.together.arrive_and_wait();
    std::vector<std::string> all(board_.texts.begin(), board_.texts.end());
    board_.together.arrive_and_wait();
    return all;
  }

 private:
  Board& board_;
  int rank_;
};

using Checks = std::vector<const Check*>;

// The findings that each rank is told, one per line.
std::array<std::string, kRanks> told(const std::array<Checks, kRanks>& checks) {
  Board board;
  std::array<std::string, kRanks> all;
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto index = static_cast<std::size_t>(rank);
        ThreadExchange exchange(board, rank);
        const Subject subject{.rank = rank, .node = rank, .host = formatted("node{}", rank + 1)};
        for (const Finding& finding : look(checks[index], subject, exchange))
          all[index] += std::string(name_of(finding.level)) + " " + finding.check + " " + line(finding) + "\n";
      });
    }
  }
  return all;
}

const Check kBreaks{"breaks", Cost::Thorough,
                    [](const Subject& subject, Exchange& exchange) -> nlohmann::json {
                      exchange.allgather("one");
                      check(subject.rank != 1, "test", "broken");
                      exchange.allgather("two");
                      return "whole";
                    },
                    [](const Facts&) -> std::vector<Finding> { return {{.what = "whole"}}; }};

const Check kTalks{
    "talks", Cost::Thorough,
    [](const Subject& subject, Exchange& exchange) -> nlohmann::json {
      return joined(exchange.allgather(std::to_string(subject.rank)), ",");
    },
    [](const Facts& facts) -> std::vector<Finding> { return {{.what = facts.front().value.get<std::string>()}}; }};

const Check kSilent{
    "silent", Cost::Cheap, [](const Subject&, Exchange&) -> nlohmann::json { return 1; },
    [](const Facts& facts) -> std::vector<Finding> { return {{.what = formatted("{} ranks", facts.size())}}; }};

TEST(Look, ACheckThatFailsOnOneRankLeavesTheOthersInStep) {
  const Checks both{&kBreaks, &kTalks};
  for (const std::string& text : told({both, both, both})) {
    expect_says(text, {"yellow breaks node2: could not be looked at: [test] broken",
                       "yellow breaks node1: could not be looked at: [doctor] rank 1 could not go on with this check",
                       "green talks 0,1,2"});
    EXPECT_EQ(text.find("whole"), std::string::npos) << text;
  }
}

// As where --no-preflight is an option of some ranks alone, which is what is to be told.
TEST(Look, RanksWithOtherChecksStayInStep) {
  const std::string first = told({Checks{&kSilent}, Checks{}, Checks{&kSilent}})[0];
  expect_says(first, {"green silent 2 ranks"});
}

}  // namespace
}  // namespace lockstep::test
