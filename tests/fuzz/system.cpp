// Lists of processors and what launchers say of a job, as they stand in files of the system and in the environment.
#include "lockstep/comm/launch.h"
#include "lockstep/host/cgroup.h"
#include "lockstep/host/threads.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  return {bytes_of("0-3,8"), bytes_of("2(x3),1"), bytes_of("4"), bytes_of("0::/a/b\n4:cpu,cpuacct:/x\n"),
          bytes_of("150000 100000\n")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string text(fuzz::text_of(data, size));
  fuzz::expect_answer([&] { host::parse_cpu_list(text); });
  const auto says = [&](const std::string&) { return std::optional(text); };
  fuzz::expect_answer([&] { comm::launch_problem({.world_size = 1, .library = "Open MPI v4", .variable = says}); });
  const auto file = fuzz::input_file("cpu.max", {data, size});
  fuzz::expect_answer([&] { host::cgroup_cpu_quota(file, file.parent_path()); });
  return 0;
}
