#include "lockstep/preflight/login.h"

#include "lockstep/core/error.h"
#include "tests/preflight/support.h"

namespace lockstep::test {
namespace {

using namespace preflight;

std::string told(int status, const char* errors, int port = 0) {
  return line(login_failure(
      {.host = "me@node2", .port = port, .program = "/opt/lockstep", .status = status, .errors = errors}));
}

TEST(Login, EveryWayToFailHasItsLine) {
  expect_says(told(255, "ssh: Could not resolve hostname node2: Name or service not known\r\n"),
              {"does not resolve", "/etc/hosts"});
  expect_says(told(255, "ssh: connect to host node2 port 22: Connection refused\r\n"),
              {"no ssh server answers on port 22", "-p PORT"});
  expect_says(told(255, "ssh: connect to host node2 port 2222: Connection refused\r\n", 2222), {"port 2222"});
  expect_says(told(255, "ssh: connect to host node2 port 22: Connection timed out\r\n"),
              {"no answer to ssh", "ping node2"});
  expect_says(told(255, "No ED25519 host key is known for node2\r\nHost key verification failed.\r\n", 2222),
              {"host key is not known", "ssh-keyscan -p 2222 node2 >> ~/.ssh/known_hosts"});
  expect_says(
      told(255, "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.\n", 2222),
      {"another one than before", "ssh-keygen -R '[node2]:2222'"});
  expect_says(told(255, "me@node2: Permission denied (publickey).\r\n"), {"refuses the key", "ssh-copy-id me@node2"});
  expect_says(told(127, "bash: line 1: exec: /opt/lockstep: not found\n"),
              {"/opt/lockstep cannot be started there", "copy the build"});
  expect_says(told(126, "bash: line 1: /opt/lockstep: Permission denied\n"),
              {"/opt/lockstep cannot be started there: bash: line 1", "chmod +x"});
  expect_says(told(127, "/opt/lockstep: error while loading shared libraries: libmpi.so.40: cannot open\n"),
              {"cannot be started there", "its libraries"});
  expect_says(told(1, "lockstep: Connection refused\n"), {"ssh ended with status 1: lockstep: Connection refused"});
  expect_says(told(255, "odd\n", 2222), {"status 255: odd", "ssh -p 2222 me@node2 true"});
  expect_says(told(-1, ""), {"no answer to ssh (within the time)"});
  expect_says(told(3, "odd\n"), {"status 3: odd", "ssh me@node2 true"});
}

TEST(Findings, OfAnUnknownLevelAreRefused) {
  nlohmann::json list = to_json({{.what = "x"}});
  list[0]["level"] = "purple";
  EXPECT_THROW(findings_from_json(list), Error);
}

TEST(Findings, TravelAsJson) {
  const std::vector<Finding> findings{{.level = Level::Red, .what = "w", .where = "h", .mend = "m", .check = "c"},
                                      {.what = "x"}};
  const std::vector<Finding> back = findings_from_json(to_json(findings));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(line(back[0]), "h: w; m");
  EXPECT_EQ(back[0].check, "c");
  EXPECT_EQ(worst(back), Level::Red);
  EXPECT_EQ(worst({}), Level::Green);
}

}  // namespace
}  // namespace lockstep::test
