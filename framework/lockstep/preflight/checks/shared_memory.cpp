// /dev/shm, where the ranks of a node exchange gradients and keep their weights.
#include <sys/statvfs.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

constexpr double kSharedMiB = 1 << 20;
constexpr double kEnoughShared = 256;  // MiB free: a ResNet-50's weights and gradients
constexpr double kLeastPerRank = 8;    // MiB free for each rank: MPI's own segments do not fit

json gather_shared_memory(const Subject& subject, Exchange&) {
  if (!subject.speaks()) return nullptr;
  struct statvfs room {};
  if (statvfs("/dev/shm", &room) != 0) return {{"ranks", subject.local_ranks}, {"total", 0}, {"free", 0}};
  const double block = static_cast<double>(room.f_frsize);
  return {{"ranks", subject.local_ranks},
          {"total", block * static_cast<double>(room.f_blocks) / kSharedMiB},
          {"free", block * static_cast<double>(room.f_bavail) / kSharedMiB}};
}

std::vector<Finding> conclude_shared_memory(const Facts& facts) {
  std::vector<Finding> findings;
  double least = 1e300;
  for (const RankFacts& node : facts) {
    const double free = node.value.at("free"), total = node.value.at("total");
    const int ranks = node.value.at("ranks");
    const double enough = std::max(kEnoughShared, kLeastPerRank * ranks);
    least = std::min(least, free);
    if (free >= enough) continue;
    findings.push_back(
        {.level = free < kLeastPerRank * ranks ? Level::Red : Level::Yellow,
         .what = formatted("/dev/shm has {:.0f} MiB, {:.0f} of them free, expected {:.0f} or more for {} rank{}", total,
                           free, enough, ranks, ranks == 1 ? "" : "s"),
         .where = node.host,
         .mend = total < enough ? "mount -o remount,size=50% /dev/shm, or docker run --shm-size=2g"
                                : "remove what earlier jobs left: ls -l /dev/shm"});
  }
  return or_green(std::move(findings), formatted("{:.0f} MiB free in /dev/shm, at least", least));
}

}  // namespace

const Check kSharedMemory{"shared-memory", Cost::Cheap, gather_shared_memory, conclude_shared_memory};

}  // namespace lockstep::preflight
