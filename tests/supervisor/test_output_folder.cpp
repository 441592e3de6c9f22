// The files by which a supervisor sees that a job has begun.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tools/supervisor/output_folder.h"

namespace lockstep::supervisor {
namespace {

namespace fs = std::filesystem;

TEST(OutputFolder, SeesTheFilesOfAJobWhereverItsLogsLie) {
  const fs::path folder = fs::path(testing::TempDir()) / "lockstep_supervisor_stamps";
  fs::remove_all(folder);
  const auto write = [&](const fs::path& name) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << "text";
  };
  for (const char* mine : {"logs/supervisor.log", "logs/supervisor.hosts", "logs/.lock"}) write(mine);
  EXPECT_TRUE(OutputFolder::stamps(folder).empty());
  const std::vector<fs::path> names{"metrics.jsonl", "checkpoints/step-0000000004.h5", "logs/rank-0000.log",
                                    "logs/node2/rank-0008.log"};
  for (const fs::path& name : names) write(name);
  const OutputFolder::Stamps stamps = OutputFolder::stamps(folder);
  EXPECT_EQ(stamps.size(), names.size());
  for (const fs::path& name : names) EXPECT_TRUE(stamps.contains(folder / name)) << name;
  std::ofstream(folder / names.back(), std::ios::app) << "more";
  EXPECT_NE(OutputFolder::stamps(folder), stamps);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::supervisor
