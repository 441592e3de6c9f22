// Connections between launchers: both ends in this process, and a door at which others come, too.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/launcher/helpers.h"
#include "tools/launcher/connection.h"
#include "tools/launcher/messages.h"
#include "tools/launcher/reception.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

using Side = Handshake::Side;

// Two ends of a connection within this process.
struct Pair {
  Pair(const Secret& one, const Secret& two) {
    int files[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, files), 0);
    client = std::make_unique<Connection>(io::FileDescriptor(files[0]), "server", Side::Client, one);
    server = std::make_unique<Connection>(io::FileDescriptor(files[1]), "client", Side::Server, two);
  }
  void pump() {
    for (int i = 0; i < 10; ++i) {
      client->pump();
      server->pump();
    }
  }
  std::unique_ptr<Connection> client, server;
};

TEST(Connection, PassesMessagesBothWaysAndTellsTheEnd) {
  Pair pair(secret(), secret());
  pair.client->send(output("lost, as nobody has proven anything yet"));
  pair.pump();
  ASSERT_TRUE(pair.client->ready() && pair.server->ready());
  pair.client->send(output("up"));
  pair.server->send(output(std::string(900'000, 'x')));
  pair.pump();
  EXPECT_EQ(read_text(*pair.server->next()), "up");
  for (int i = 0; i < 1000 && !pair.server->all_sent(); ++i) pair.pump();
  EXPECT_EQ(read_text(*pair.client->next()).size(), 900'000U);
  pair.server->send(ended(7));
  pair.server->close("");
  pair.pump();
  EXPECT_TRUE(pair.client->closed());
  EXPECT_EQ(read_number(*pair.client->next()), 7) << "what was said before the end counts";
}

TEST(Connection, BothSidesSayThatTheOtherHasAnotherSecret) {
  Pair pair(secret(), Secret("another secret of 16", "test"));
  pair.pump();
  EXPECT_TRUE(pair.client->closed() && pair.server->closed());
  EXPECT_EQ(pair.client->problem(), "it has another secret");
  EXPECT_EQ(pair.server->problem(), "it has another secret");
}

class Door : public ::testing::Test {
 protected:
  std::unique_ptr<Connection> come(const Secret& with) {
    std::string reason;
    auto socket = connect_tcp("127.0.0.1", port_, 1000, reason);
    return std::make_unique<Connection>(*std::move(socket), "door", Side::Client, with);
  }
  io::FileDescriptor come_raw(const std::string& bytes) {
    std::string reason;
    auto socket = connect_tcp("127.0.0.1", port_, 1000, reason);
    if (!bytes.empty()) {
      EXPECT_GT(::send(socket->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT), 0);
    }
    return *std::move(socket);
  }
  std::size_t look_for(Connection* guest, int turns = 200) {
    std::size_t found = 0;
    for (int i = 0; i < turns && found == 0; ++i) {
      if (guest != nullptr) guest->pump();
      found += reception_.look().size();
      usleep(1000);
    }
    return found;
  }

  io::FileDescriptor listener_ = listen_tcp(0);
  int port_ = port_of(listener_);
  std::vector<std::string> said_;
  Reception reception_{std::move(listener_), secret(), [this](const std::string& text) { said_.push_back(text); }};
};

TEST_F(Door, OpensForWhoKnowsTheSecretWhateverElseComes) {
  const io::FileDescriptor silent = come_raw(""), noise = come_raw(std::string(1 << 20, 'x')), scan = come_raw("");
  { const io::FileDescriptor gone = come_raw("LSLA"); }
  auto wrong = come(Secret("another secret of 16", "test"));
  EXPECT_EQ(look_for(wrong.get()), 0U);
  EXPECT_EQ(wrong->problem(), "it has another secret");
  ASSERT_EQ(said_.size(), 1U) << "once per address";
  EXPECT_NE(said_[0].find("a connection from 127.0.0.1:"), std::string::npos) << said_[0];
  auto right = come(secret());
  EXPECT_EQ(look_for(right.get()), 1U);
}

TEST_F(Door, IsNotHeldByThoseWhoSayNothing) {
  std::vector<io::FileDescriptor> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(come_raw(""));
  auto right = come(secret());
  EXPECT_EQ(look_for(right.get()), 1U);
  EXPECT_EQ(said_.size(), 1U);
}

TEST_F(Door, GivesUpOnASilentConnection) {
  reception_.set_limit(std::chrono::milliseconds(1));
  const io::FileDescriptor silent = come_raw("");
  while (said_.empty()) look_for(nullptr, 1);
  EXPECT_NE(said_[0].find("has not proven within"), std::string::npos) << said_[0];
}

TEST(Sockets, LocalOnesAreOfThisUser) {
  const std::string name = "lockstep-test-" + hexadecimal(random_bytes(8));
  const io::FileDescriptor listener = listen_local(name), client = connect_local(name);
  EXPECT_TRUE(is_own_user(client));
  EXPECT_EQ(peer_of(client), "");
  EXPECT_NE(error_of([] { connect_local("lockstep-test-nobody"); }).find("does not answer"), std::string::npos);
}

TEST(Sockets, APortInUseIsNamed) {
  const io::FileDescriptor listener = listen_tcp(0);
  EXPECT_NE(error_of([&] { listen_tcp(port_of(listener)); }).find("cannot be listened at: Address already in use"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::launcher
