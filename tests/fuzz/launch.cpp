// The bytes that a peer may send to `lockstep launch`: before it has proven that it knows the secret, the raw bytes;
// after that, bytes on a sealed channel, and the bodies of messages that are sealed as they should be.
#include "tests/fuzz/harness.h"
#include "tools/launcher/messages.h"

namespace lockstep::fuzz {
namespace {

const launcher::Secret& secret() {
  static const launcher::Secret value("0123456789abcdef", "fuzz");
  return value;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all{bytes_of(launcher::Handshake(launcher::Handshake::Side::Client, secret()).begin())};
  launcher::SealedChannel channel({});
  for (const auto& message :
       {to_message(launcher::Join{.words = {"./train", "--lr", "1"}}), launcher::to_message(launcher::Run{}),
        to_message(launcher::Done{}), to_message(launcher::Welcome{}), launcher::output("text"), launcher::ended(3)}) {
    all.push_back(bytes_of(message.body));
    all.push_back(bytes_of(channel.seal(message)));
  }
  return all;
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string text(fuzz::text_of(data, size));
  for (const auto side : {launcher::Handshake::Side::Server, launcher::Handshake::Side::Client}) {
    launcher::Handshake handshake(side, fuzz::secret());
    std::string received = text;
    handshake.take(received);
    if (handshake.done()) std::abort();  // nobody can prove what they do not know
  }
  fuzz::expect_answer([&] {
    launcher::SealedChannel channel({});
    channel.receive(text);
    while (channel.next()) {
    }
  });
  const launcher::Message message{launcher::Kind::Join, text};
  fuzz::expect_answer([&] { launcher::read_join(message); });
  fuzz::expect_answer([&] { launcher::read_run(message); });
  fuzz::expect_answer([&] { launcher::read_done(message); });
  fuzz::expect_answer([&] { launcher::read_welcome(message); });
  fuzz::expect_answer([&] { launcher::read_text(message); });
  fuzz::expect_answer([&] { launcher::read_number(message); });
  return 0;
}
