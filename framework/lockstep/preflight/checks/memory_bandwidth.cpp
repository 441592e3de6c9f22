// How fast each node's memory is: a node that others use, or with a memory module less, holds all others up.
#include <algorithm>
#include <chrono>
#include <exception>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/on_threads.h"
#include "lockstep/host/address_space.h"
#include "lockstep/host/cgroup.h"
#include "lockstep/host/threads.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

constexpr std::size_t kMostElements = std::size_t{1} << 22;   // of each of three arrays, per thread
constexpr std::size_t kLeastElements = std::size_t{1} << 20;  // fewer may lie in caches
constexpr std::size_t kArraysBytes = 3 * sizeof(double);      // of an element
constexpr std::size_t kShare = 4;                             // one part of so many of the memory that is left
constexpr int kRepeats = 4;
constexpr double kSlowNode = 0.5;  // of the fastest node

struct Arrays {
  std::vector<double> a, b, c;
};

// a = b + 3 c over the elements of one thread, which writes a and reads b and c.
void triad(Arrays& own) {
  for (std::size_t i = 0; i < own.a.size(); ++i) own.a[i] = own.b[i] + 3 * own.c[i];
}

// Of each array of a thread: less than usual where a limit leaves little memory. Throws Error where it leaves too
// little to measure.
std::size_t elements_for(std::size_t threads) {
  const std::size_t left = std::min(host::address_space().left(), host::cgroup_memory_left());
  const std::size_t fit = left / kShare / (threads * kArraysBytes);
  check(fit >= kLeastElements, "memory-bandwidth",
        "limits (ulimit -v, the container's memory) leave {} MiB, expected {} MiB or more to measure with {} threads",
        left >> 20, (kLeastElements * kArraysBytes * threads * kShare) >> 20, threads);
  return std::min(fit, kMostElements);
}

// GB/s, the best of some runs. Each thread takes its memory itself, so that it lies near the thread.
double measure(std::size_t threads) {
  const std::size_t elements = elements_for(threads);
  std::vector<Arrays> arrays(threads);
  on_threads(threads, [&](std::size_t i) {
    arrays[i] = {std::vector<double>(elements), std::vector<double>(elements, 1.0), std::vector<double>(elements, 2.0)};
  });
  double best = 0;
  for (int i = 0; i < kRepeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    on_threads(threads, [&](std::size_t part) { triad(arrays[part]); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 1e-9 * static_cast<double>(kArraysBytes * elements * threads) / seconds);
  }
  return best;
}

// With the threads of the job's ranks here, as far as there are cores for them. A host with too little memory for
// the arrays gives its problem, and the other hosts are measured.
json rate_here(const Subject& subject) {
  const int cores = std::clamp(host::available_cores().physical, 1, 16);
  try {
    return measure(static_cast<std::size_t>(std::clamp(subject.threads * subject.local_ranks, 1, cores)));
  } catch (const std::exception& error) {
    return {{"problem", error.what()}};
  }
}

json gather_memory_bandwidth(const Subject& subject, Exchange& exchange) {
  json rate = subject.speaks() ? rate_here(subject) : json();
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
