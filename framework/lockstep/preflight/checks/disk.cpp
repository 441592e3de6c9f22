// Room for checkpoints in the output folder, which rank 0 writes. Looked at on each node, as a start without its hosts
// makes another one the first.
#include <sys/statvfs.h>
#include <unistd.h>

#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

constexpr double kDiskMiB = 1 << 20;
constexpr double kEnoughDisk = 1024, kTooLittleDisk = 16;  // MiB
constexpr double kEnoughFiles = 64, kTooFewFiles = 8;      // a checkpoint, its temporary file, logs

// The folder, or the one in which it will be made.
std::filesystem::path existing(std::filesystem::path folder) {
  std::error_code none;
  while (!std::filesystem::exists(folder, none) && folder.has_relative_path() && folder != folder.parent_path())
    folder = folder.parent_path();
  return folder.empty() ? "." : folder;
}

json gather_disk(const Subject& subject, Exchange&) {
  if (!subject.speaks() || subject.output.empty()) return nullptr;
  const std::filesystem::path folder = existing(std::filesystem::absolute(subject.output));
  struct statvfs room {};
  check_call(statvfs(folder.c_str(), &room) == 0, "disk", "the room in {}", folder.string());
  return {{"folder", folder.string()},
          {"writable", access(folder.c_str(), W_OK) == 0},
          {"files", room.f_files > 0 ? static_cast<double>(room.f_favail) : 1e9},
          {"free", static_cast<double>(room.f_frsize) * static_cast<double>(room.f_bavail) / kDiskMiB}};
}

std::vector<Finding> conclude_disk(const Facts& facts) {
  std::vector<Finding> findings;
  for (const RankFacts& node : facts) {
    const double free = node.value.at("free");
    const std::string folder = node.value.at("folder");
    const Level level = node.rank == 0 ? Level::Red : Level::Yellow;
    if (!node.value.at("writable").get<bool>()) {
      findings.push_back({.level = level,
                          .what = formatted("{} cannot be written to", folder),
                          .where = node.host,
                          .mend = "--output DIR, a folder of yours"});
      continue;
    }
    const double files = node.value.at("files");
    if (free < kEnoughDisk)
      findings.push_back({.level = free < kTooLittleDisk ? level : Level::Yellow,
                          .what = formatted("the file system of {} has {:.0f} MiB left for checkpoints and logs, "
                                            "expected {:.0f} MiB or more",
                                            folder, free, kEnoughDisk),
                          .where = node.host,
                          .mend = "--output DIR elsewhere, --keep last:1, or remove files there"});
    if (files < kEnoughFiles)
      findings.push_back({.level = files < kTooFewFiles ? level : Level::Yellow,
                          .what = formatted("the file system of {} takes {:.0f} more files, however small, expected "
                                            "{:.0f} or more (df -i)",
                                            folder, files, kEnoughFiles),
                          .where = node.host,
                          .mend = "--output DIR elsewhere, or remove files there that are many"});
  }
  return or_green(std::move(findings), formatted("{:.0f} MiB free in {}", facts.front().value.at("free").get<double>(),
                                                 facts.front().value.at("folder").get<std::string>()));
}

}  // namespace

const Check kDisk{"disk", Cost::Cheap, gather_disk, conclude_disk};

}  // namespace lockstep::preflight
