#include "tools/supervisor/lost_hosts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lockstep::supervisor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{100'000};  // for what takes milliseconds, also where the machine is busy

// A job on hosts whose ssh is a script: a host is up while a file of its name lies in the folder.
class LostHostsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    std::ofstream(agent_) << "#!/bin/sh\n[ -e " << (folder_ / "$1").string() << " ] || { echo down >&2; exit 1; }\n";
    std::filesystem::permissions(agent_, std::filesystem::perms::owner_all);
    set_up("far1");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void set_up(const std::string& host) { std::ofstream(folder_ / host) << "up"; }
  JobCommand command() const {
    return JobCommand({"mpirun", "--mca", "plm_rsh_agent", agent_.string(), "--host", "far1,far2,far3", "program"},
                      launch::MpirunKind::OpenMpi);
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("lost-hosts-" + std::to_string(getpid()));
  const std::filesystem::path agent_ = folder_ / "agent";
  const MpiTraces traces_{};
};

TEST_F(LostHostsTest, NamesHostsThatDoNotAnswerWithReasons) {
  const JobCommand job = command();
  LostHosts hosts(job, traces_, {.job = "none", .limit = kLong});
  EXPECT_EQ(hosts.ask_all(), (std::vector<std::string>{"far2 (down)", "far3 (down)"}));
  EXPECT_EQ(hosts.names(), (std::vector<std::string>{"far2", "far3"}));
  set_up("far2");
  EXPECT_EQ(hosts.ask_all(), std::vector<std::string>{"far3 (down)"});
  EXPECT_EQ(hosts.names(), std::vector<std::string>{"far3"});
}

TEST_F(LostHostsTest, TellsAHostThatAnswersAgain) {
  const JobCommand job = command();
  LostHosts hosts(job, traces_, {.job = "none", .rejoin = milliseconds(1), .limit = kLong});
  EXPECT_FALSE(hosts.returned()) << "no host is lost yet";
  hosts.ask_all();
  set_up("far3");
  std::optional<std::string> back;
  for (const auto until = std::chrono::steady_clock::now() + kLong;
       !back && std::chrono::steady_clock::now() < until;) {
    back = hosts.returned();
    usleep(1000);
  }
  EXPECT_EQ(back, "far3");
  hosts.stop_asking();
  EXPECT_EQ(hosts.names(), (std::vector<std::string>{"far2", "far3"})) << "as of ask_all()";
}

TEST_F(LostHostsTest, AsksNoHostAgainWithoutRejoin) {
  const JobCommand job = command();
  LostHosts hosts(job, traces_, {.job = "none", .limit = kLong});
  hosts.ask_all();
  set_up("far2");
  EXPECT_FALSE(hosts.returned());
}

}  // namespace
}  // namespace lockstep::supervisor
