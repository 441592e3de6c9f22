#include "lockstep/launch/mpirun_kind.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lockstep/core/error.h"
#include "lockstep/launch/machinefile.h"

namespace lockstep::launch {
namespace {

constexpr const char *kOpen = "Open MPI v5.0.7", *kMpich = "MPICH Version: 4.0.2";

TEST(MpirunKind, NamesTell) {
  for (const char* library : {kOpen, kMpich}) {
    for (const char* word : {"orterun", "/usr/bin/mpirun.openmpi", "prterun"})
      EXPECT_EQ(mpirun_kind(word, library), MpirunKind::OpenMpi) << word;
    for (const char* word : {"mpiexec.hydra", "/usr/bin/mpirun.mpich"})
      EXPECT_EQ(mpirun_kind(word, library), MpirunKind::Hydra) << word;
    for (const char* word : {"srun", "./mpirun.sh", "train", ""})
      EXPECT_EQ(mpirun_kind(word, library), MpirunKind::None) << word;
  }
}

TEST(MpirunKind, AnyonesMpirunIsThatOfItsFileOrOfTheLibrary) {
  const auto folder = std::filesystem::temp_directory_path() / ("lockstep-kind-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "mpirun") << "";
  EXPECT_EQ(mpirun_kind((folder / "mpirun").string(), kOpen), MpirunKind::OpenMpi);
  EXPECT_EQ(mpirun_kind((folder / "mpirun").string(), kMpich), MpirunKind::Hydra);
  EXPECT_EQ(mpirun_kind("/no/such/mpiexec", kMpich), MpirunKind::Hydra);
  std::ofstream(folder / "mpiexec.hydra") << "";
  std::filesystem::create_symlink("mpiexec.hydra", folder / "mpiexec");
  EXPECT_EQ(mpirun_kind((folder / "mpiexec").string(), kOpen), MpirunKind::Hydra);
  std::filesystem::remove_all(folder);
}

TEST(Machinefile, IsReadAsHydraReadsIt) {
  const HostList list =
      parse_machinefile("# two hosts\nnode1:8 ifname=eth1\nnode2 user=me # here\n\nnode1:2\n", "hosts");
  ASSERT_EQ(list.hosts.size(), 2U);
  EXPECT_EQ(list.hosts[0].slots, 10);
  EXPECT_EQ(list.hosts[1].login(), "me@node2");
  EXPECT_EQ(list.hosts[1].slots, 0) << "not said";
  EXPECT_EQ(list.hosts[1].origin, "hosts:3");
  for (const char* wrong : {"", "# none\n", "node1:0\n", "node1:\n", "node1:x\n", "-x:2\n", "a\nb user=-y\n"})
    EXPECT_THROW(parse_machinefile(wrong, "hosts"), Error) << wrong;
}

}  // namespace
}  // namespace lockstep::launch
