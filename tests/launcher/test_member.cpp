// A node other than 0, against a node 0 that this test plays.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/exit_status.h"
#include "tests/launcher/helpers.h"
#include "tools/launcher/member.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

// Takes one node in and ends the job at once: the welcome, the job's end and the end of the connection are one packet.
void end_job_with_the_welcome(const io::FileDescriptor& listener, const Done& done) {
  pollfd file{listener.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&file, 1, 20'000), 1) << "nobody came";
  io::FileDescriptor socket(::accept(listener.get(), nullptr, nullptr));
  const io::FileDescriptor same(::dup(socket.get()));
  Connection connection(std::move(socket), "node 1", Handshake::Side::Server, secret());
  std::optional<Message> join;
  while (!join && !connection.closed()) {
    std::vector<pollfd> files{connection.wanted()};
    wait_for(files, 50ms);
    connection.pump();
    join = connection.next();
  }
  ASSERT_TRUE(join) << connection.problem();
  const int on = 1;
  ASSERT_EQ(::setsockopt(same.get(), IPPROTO_TCP, TCP_CORK, &on, sizeof on), 0);
  connection.send(to_message(Welcome{}));
  connection.send(to_message(done));
}

TEST(Member, HearsTheEndOfAJobThatEndsWithItsWelcome) {
  LOCKSTEP_SKIP_WITHOUT_SUBREAPER();
  const io::FileDescriptor listener = listen_tcp(0);
  std::vector<std::string> said;
  supervisor::Signals signals;
  Member member({.addresses = {"127.0.0.1"}, .port = port_of(listener), .join = {.nodes = 2, .node = 1}, .limit = 20s},
                secret(), signals, [&](const std::string& text) { said.push_back(text); });
  std::thread head(
      [&] { end_job_with_the_welcome(listener, {.status = kExitCommandLine, .reason = "the nodes differ"}); });
  EXPECT_EQ(member.run(), kExitCommandLine);
  head.join();
  EXPECT_EQ(said, std::vector<std::string>{"the job has ended: the nodes differ"});
}

}  // namespace
}  // namespace lockstep::launcher
