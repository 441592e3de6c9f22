// How fast each node's memory is: a node that others use, or with a memory module less, holds all others up.
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/host/threads.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

constexpr std::size_t kElements = std::size_t{1} << 22;  // of each of three arrays, per thread
constexpr int kRepeats = 4;
constexpr double kSlowNode = 0.5;  // of the fastest node

// a = b + 3 c over the elements of one thread, which writes a and reads b and c.
void triad(std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& c) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] + 3 * c[i];
}

// GB/s, the best of some runs.
double measure(int threads) {
  struct Arrays {
    std::vector<double> a, b, c;
  };
  std::vector<Arrays> arrays(static_cast<std::size_t>(threads));
  const auto each = [&](auto work) {
    std::vector<std::jthread> team;
    for (Arrays& own : arrays) team.emplace_back([&own, work] { work(own); });
  };
  each([](Arrays& own) {
    own = {std::vector<double>(kElements), std::vector<double>(kElements, 1.0), std::vector<double>(kElements, 2.0)};
  });
  double best = 0;
  for (int i = 0; i < kRepeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    each([](Arrays& own) { triad(own.a, own.b, own.c); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 1e-9 * 3 * sizeof(double) * static_cast<double>(kElements) * threads / seconds);
  }
  return best;
}

json gather_memory_bandwidth(const Subject& subject, Exchange& exchange) {
  json rate = nullptr;
  if (subject.speaks()) rate = measure(std::clamp(host::available_cores().physical, 1, 16));
  exchange.allgather("");
  return rate;
}

std::vector<Finding> conclude_memory_bandwidth(const Facts& facts) {
  const double best = std::ranges::max_element(facts, {}, [](const RankFacts& node) {
                        return node.value.get<double>();
                      })->value.get<double>();
  std::vector<Finding> findings;
  for (const RankFacts& node : facts) {
    const double rate = node.value.get<double>();
    if (rate < kSlowNode * best)
      findings.push_back({.level = Level::Yellow,
                          .what = formatted("memory moves {:.3g} GB/s, on another host {:.3g}", rate, best),
                          .where = node.host,
                          .mend = "top: does another job run there? dmidecode -t memory: are all modules in?"});
  }
  return or_green(std::move(findings), formatted("{:.3g} GB/s at best", best));
}

}  // namespace

const Check kMemoryBandwidth{"memory-bandwidth", Cost::Thorough, gather_memory_bandwidth, conclude_memory_bandwidth};

}  // namespace lockstep::preflight
