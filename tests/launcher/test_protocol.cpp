// The messages of two launchers to each other: each proof and each message as it should be, and then broken.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/launcher/helpers.h"
#include "tools/launcher/handshake.h"
#include "tools/launcher/messages.h"

namespace lockstep::launcher {
namespace {

using Side = Handshake::Side;

TEST(Secret, IsLongEnoughAndSpaceAroundItDoesNotCount) {
  EXPECT_EQ(Secret(" 0123456789abcdef\n", "test").text(), "0123456789abcdef");
  EXPECT_NE(error_of([] { Secret("short", "LOCKSTEP_LAUNCH_SECRET"); }).find("LOCKSTEP_LAUNCH_SECRET has 5 characters"),
            std::string::npos);
}

TEST(Secret, FileIsThisUsersAlone) {
  char folder[] = "/tmp/lockstep-secret-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::filesystem::path file = std::filesystem::path(folder) / "secret";
  std::ofstream(file) << "0123456789abcdef\n";
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_NE(error_of([&] { Secret::from_file(file); }).find("has mode 0644, expected 0600"), std::string::npos);
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  EXPECT_EQ(Secret::from_file(file).text(), "0123456789abcdef");
  EXPECT_NE(error_of([&] { Secret::from_file(folder); }).find("not a regular file"), std::string::npos);
  EXPECT_NE(error_of([&] { Secret::from_file(file.string() + "2"); }).find("No such file"), std::string::npos);
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
    error_of([&] { opened = receiver.next().has_value(); });
    EXPECT_FALSE(opened) << bit;
  }
}

TEST_F(Channel, MessagesThatAreRepeatedOrSwappedOrSentBackAreNoticed) {
  const std::string first = sender_.seal(output("one")), second = sender_.seal(output("two"));
  SealedChannel repeated({.in = keys_.out, .out = keys_.in}), swapped = repeated, back = sender_;
  repeated.receive(first + first);
  EXPECT_TRUE(repeated.next());
  EXPECT_NE(error_of([&] { repeated.next(); }).find("message 1 of the connection is not as it was sent"),
            std::string::npos);
  swapped.receive(second);
  EXPECT_NE(error_of([&] { swapped.next(); }), "no error");
  back.receive(first);
  EXPECT_NE(error_of([&] { back.next(); }), "no error");
}

TEST_F(Channel, OversizedMessagesAreRefusedBeforeTheyAreRead) {
  EXPECT_NE(error_of([&] {
              sender_.seal({Kind::Output, std::string(SealedChannel::kMostBytes + 1, 'x')});
            }),
            "no error");
  receiver_.receive(std::string("\xff\xff\xff\xff\x05", 5));
  EXPECT_NE(error_of([&] { receiver_.next(); }).find("4294967295 bytes is announced"), std::string::npos);
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
    EXPECT_NE(error_of([&] {
                read_join({Kind::Join, body});
              }).find("not of the expected form"),
              std::string::npos)
        << body;
}

}  // namespace
}  // namespace lockstep::launcher
