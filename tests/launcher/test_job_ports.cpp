// Ports of a job that are taken on this node.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/launcher/helpers.h"
#include "tools/launcher/job_ports.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

// A port that this process listens at until the end of the test, in each role of a plan.
class TakenPorts : public ::testing::Test {
 protected:
  std::string message(const launch::PortPlan& plan, int ranks) {
    return error_of([&] { check_job_ports(plan, ranks); });
  }

  io::FileDescriptor listener_ = listen_tcp(0);
  int taken_ = port_of(listener_);
};

TEST_F(TakenPorts, OfTheDaemonAreNamed) {
  const int other = free_port();
  const std::string four = message({.daemon_v4 = taken_, .daemon_v6 = other}, 0);
  EXPECT_NE(four.find(fmt::format("port {} of --ports", taken_)), std::string::npos) << four;
  EXPECT_NE(four.find("is taken"), std::string::npos) << four;
  const std::string six = message({.daemon_v4 = other, .daemon_v6 = taken_}, 0);
  EXPECT_NE(six.find(fmt::format("port {} of --ports", taken_)), std::string::npos) << six;
}

TEST_F(TakenPorts, OfRanksCountWhereTooFewAreLeft) {
  const int one = free_port(), two = free_port();
  const launch::PortPlan plan{.daemon_v4 = one, .daemon_v6 = two, .ranks = {taken_, taken_}};
  const std::string text = message(plan, 1);
  EXPECT_NE(text.find("0 ports for ranks are free"), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("port {} is taken", taken_)), std::string::npos) << text;
  EXPECT_NO_THROW(check_job_ports(plan, 0));
}

TEST_F(TakenPorts, WithoutARangeNothingIsLookedAt) { EXPECT_NO_THROW(check_job_ports(std::nullopt, 8)); }

}  // namespace
}  // namespace lockstep::launcher
