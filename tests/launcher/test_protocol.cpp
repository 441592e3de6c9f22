// What two launchers say to each other: each proof and each message as it should be, and then broken.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "tools/launcher/connection.h"
#include "tools/launcher/messages.h"
#include "tools/launcher/reception.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

using Side = Handshake::Side;

const Secret& secret() {
  static const Secret value("0123456789abcdef", "test");
  return value;
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Secret, IsLongEnoughAndSpaceAroundItDoesNotCount) {
  EXPECT_EQ(Secret(" 0123456789abcdef\n", "test").text(), "0123456789abcdef");
  EXPECT_NE(
      message_of([] { Secret("short", "LOCKSTEP_LAUNCH_SECRET"); }).find("LOCKSTEP_LAUNCH_SECRET has 5 characters"),
      std::string::npos);
}

TEST(Secret, FileIsThisUsersAlone) {
  char folder[] = "/tmp/lockstep-secret-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::filesystem::path file = std::filesystem::path(folder) / "secret";
  std::ofstream(file) << "0123456789abcdef\n";
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_NE(message_of([&] { Secret::from_file(file); }).find("has mode 0644, expected 0600"), std::string::npos);
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  EXPECT_EQ(Secret::from_file(file).text(), "0123456789abcdef");
  EXPECT_NE(message_of([&] { Secret::from_file(folder); }).find("not a regular file"), std::string::npos);
  EXPECT_NE(message_of([&] { Secret::from_file(file.string() + "2"); }).find("No such file"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(Secret, OfTheEnvironmentIsRemovedThere) {
  ASSERT_EQ(setenv("LOCKSTEP_LAUNCH_SECRET", "0123456789abcdef", 1), 0);
  EXPECT_EQ(Secret::from_environment()->text(), "0123456789abcdef");
  EXPECT_EQ(getenv("LOCKSTEP_LAUNCH_SECRET"), nullptr);
  EXPECT_FALSE(Secret::from_environment());
}

TEST(Secret, HmacIsThatOfRfc4231) {
  EXPECT_EQ(hexadecimal(view(hmac("Jefe", {"what do ya want ", "for nothing?"}))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

// Both sides to the end, with what `change` makes of the bytes of each of the four steps; the problems of both.
std::pair<std::string, std::string> shake(const Secret& one, const Secret& two,
                                          const std::function<void(int, std::string&)>& change = {}) {
  Handshake client(Side::Client, one), server(Side::Server, two);
  std::string bytes = client.begin();
  for (int step = 0; step < 4; ++step) {
    if (change) change(step, bytes);
    bytes = (step % 2 == 0 ? server : client).take(bytes);
  }
  if (client.done() && server.done()) {
    EXPECT_EQ(client.keys().in, server.keys().out);
    EXPECT_EQ(client.keys().out, server.keys().in);
    EXPECT_NE(client.keys().in, client.keys().out);
  }
  return {client.done() ? "done" : client.problem(), server.done() ? "done" : server.problem()};
}

TEST(Handshake, BothSidesProveThatTheyKnowTheSecret) {
  EXPECT_EQ(shake(secret(), secret()), std::pair(std::string("done"), std::string("done")));
}

TEST(Handshake, AnotherSecretIsNoticedOnBothSides) {
  const std::string other = "it has another secret";
  EXPECT_EQ(shake(secret(), Secret("another secret of 16", "test")), std::pair(other, other));
}

TEST(Handshake, EachByteThatIsChangedIsNoticed) {
  for (int step = 0; step < 4; ++step) {
    for (std::size_t at = 0; at < 41; ++at) {
      const auto [client, server] = shake(secret(), secret(), [&](int now, std::string& bytes) {
        if (now == step && at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1);
      });
      const std::size_t bytes = std::vector<std::size_t>{41, 41, 32, 33}[static_cast<std::size_t>(step)];
      EXPECT_EQ(client == "done" && server == "done", at >= bytes) << "step " << step << ", byte " << at;
      if (step < 3 && at < bytes) {
        EXPECT_NE(server, "done") << "step " << step << ", byte " << at;
      }
    }
  }
}

TEST(Handshake, ANewOneTakesNoProofOfAnOldOne) {
  std::string old;
  shake(secret(), secret(), [&](int step, std::string& bytes) {
    if (step == 2) old = bytes;
  });
  ASSERT_EQ(old.size(), kDigestBytes);
  const auto [client, server] = shake(secret(), secret(), [&](int step, std::string& bytes) {
    if (step == 2) bytes = old;
  });
  EXPECT_EQ(server, "it has another secret");
}

TEST(Handshake, APeerThatSendsBackWhatItGetsIsNone) {
  Handshake client(Side::Client, secret());
  std::string hello = client.begin();
  EXPECT_EQ(client.take(hello), "");
  EXPECT_EQ(client.problem(), "it sends back what it is sent");
}

TEST(Handshake, NoiseIsKnownByItsFirstByte) {
  Handshake server(Side::Server, secret());
  std::string noise = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(server.take(noise), "");
  EXPECT_EQ(server.problem(), "it does not speak lockstep launch's protocol");
}

TEST(Handshake, BytesMayComeOneByOne) {
  Handshake client(Side::Client, secret()), server(Side::Server, secret());
  std::string up = client.begin(), down;
  for (int turn = 0; turn < 1000 && !(client.done() && server.done()); ++turn) {
    std::string some;
    for (std::string* bytes : {&up, &down}) {
      if (bytes->empty()) continue;
      Handshake& side = bytes == &up ? server : client;
      static std::string pending[2];
      std::string& held = pending[bytes == &up ? 0 : 1];
      held += bytes->front();
      bytes->erase(0, 1);
      (bytes == &up ? down : up) += side.take(held);
    }
  }
  EXPECT_TRUE(client.done() && server.done());
}

class Channel : public ::testing::Test {
 protected:
  ChannelKeys keys_{.in = hmac("a", {}), .out = hmac("b", {})};
  SealedChannel sender_{keys_}, receiver_{{.in = keys_.out, .out = keys_.in}};
};

TEST_F(Channel, MessagesComeInOrderInPiecesOfAnySize) {
  std::string text = sender_.seal(output("one"));
  text += sender_.seal(ended(3));
  text += sender_.seal({Kind::Done, ""});
  std::vector<Message> found;
  for (const char byte : text) {
    receiver_.receive({&byte, 1});
    while (auto message = receiver_.next()) found.push_back(*message);
  }
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(read_text(found[0]), "one");
  EXPECT_EQ(read_number(found[1]), 3);
  EXPECT_EQ(found[2].kind, Kind::Done);
}

TEST_F(Channel, AMessageThatIsCutIsNotThere) {
  const std::string text = sender_.seal(output("one"));
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    SealedChannel receiver({.in = keys_.out, .out = keys_.in});
    receiver.receive(std::string_view(text).substr(0, bytes));
    EXPECT_FALSE(receiver.next()) << bytes;
  }
}

TEST_F(Channel, EachBitThatIsChangedIsNoticed) {
  const std::string text = sender_.seal(output("one"));
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    SealedChannel receiver({.in = keys_.out, .out = keys_.in});
    receiver.receive(changed);
    bool opened = false;
    message_of([&] { opened = receiver.next().has_value(); });
    EXPECT_FALSE(opened) << bit;
  }
}

TEST_F(Channel, MessagesThatAreRepeatedOrSwappedOrSentBackAreNoticed) {
  const std::string first = sender_.seal(output("one")), second = sender_.seal(output("two"));
  SealedChannel repeated({.in = keys_.out, .out = keys_.in}), swapped = repeated, back = sender_;
  repeated.receive(first + first);
  EXPECT_TRUE(repeated.next());
  EXPECT_NE(message_of([&] { repeated.next(); }).find("message 1 of the connection is not as it was sent"),
            std::string::npos);
  swapped.receive(second);
  EXPECT_NE(message_of([&] { swapped.next(); }), "");
  back.receive(first);
  EXPECT_NE(message_of([&] { back.next(); }), "");
}

TEST_F(Channel, OversizedMessagesAreRefusedBeforeTheyAreRead) {
  EXPECT_NE(message_of([&] { sender_.seal({Kind::Output, std::string(SealedChannel::kMostBytes + 1, 'x')}); }), "");
  receiver_.receive(std::string("\xff\xff\xff\xff\x05", 5));
  EXPECT_NE(message_of([&] { receiver_.next(); }).find("4294967295 bytes is announced"), std::string::npos);
}

TEST(Messages, AreReadAsTheyWereWritten) {
  const Join join{.nodes = 3,
                  .node = 2,
                  .ranks = 8,
                  .host = "c",
                  .version = "1",
                  .mpi = "Open MPI",
                  .words = {"./a", "b c"},
                  .program = "00",
                  .problem = "",
                  .network = "10.0.0.0/8"};
  const Join read = read_join(to_message(join));
  EXPECT_EQ(read.words, join.words);
  EXPECT_EQ(read.node, 2);
  EXPECT_EQ(read.network, join.network);
  const launcher::Run run =
      read_run(to_message(launcher::Run{.host = "b", .command = "orted \xff", .variables = {{"A", "1"}}}));
  EXPECT_EQ(run.variables.at("A"), "1");
  EXPECT_EQ(run.command, "orted \xef\xbf\xbd");
  EXPECT_TRUE(read_done(to_message(Done{.status = 75, .reason = "", .again = true})).again);
  EXPECT_TRUE(read_welcome(to_message(Welcome{.supervised = true})).supervised);
}

TEST(Messages, OfAnotherFormAreErrors) {
  for (const std::string body : {"", "{", "[]", "{\"nodes\":\"x\"}", "{\"nodes\":1}", "null", "\xff"})
    EXPECT_NE(message_of([&] {
                read_join({Kind::Join, body});
              }).find("not of the expected form"),
              std::string::npos)
        << body;
}

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
  EXPECT_NE(message_of([] { connect_local("lockstep-test-nobody"); }).find("does not answer"), std::string::npos);
}

TEST(Sockets, APortInUseIsNamed) {
  const io::FileDescriptor listener = listen_tcp(0);
  EXPECT_NE(message_of([&] { listen_tcp(port_of(listener)); }).find("cannot be listened at: Address already in use"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::launcher
