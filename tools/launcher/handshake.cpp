#include "tools/launcher/handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::launcher {
namespace {

constexpr std::string_view kMagic = "LSLAUNCH";
constexpr char kVersion = 1;
constexpr std::size_t kNonceBytes = 32, kHelloBytes = kMagic.size() + 1 + kNonceBytes;
constexpr char kAccepted = 1, kRefused = 0;

}  // namespace

Handshake::Handshake(Side side, const Secret& secret)
    : side_(side), secret_(secret), own_hello_(std::string(kMagic) + kVersion + random_bytes(kNonceBytes)) {}

std::string Handshake::begin() const { return side_ == Side::Client ? own_hello_ : ""; }

std::string Handshake::both() const {
  return side_ == Side::Client ? own_hello_ + peer_hello_ : peer_hello_ + own_hello_;
}

// The two labels differ, so that a proof sent back to the side it came from is none.
std::string Handshake::proof_of(Side side) const {
  const Digest proof = hmac(secret_.text(), {side == Side::Client ? "lockstep launch client" : "lockstep launch server",
                                             std::string_view(both())});
  return std::string(view(proof));
}

std::string Handshake::fail(std::string problem) {
  problem_ = std::move(problem);
  stage_ = Stage::Failed;
  return "";
}

std::string Handshake::take(std::string& received) {
  std::string answer;
  if (stage_ == Stage::Hello) {
    // Noise is known by its first bytes; who sends it is not waited for.
    const std::size_t known = std::min(received.size(), kMagic.size());
    if (std::string_view(received).substr(0, known) != kMagic.substr(0, known))
      return fail("it does not speak lockstep launch's protocol");
    if (received.size() < kHelloBytes) return "";
    answer = take_hello(std::string_view(received).substr(0, kHelloBytes));
    received.erase(0, kHelloBytes);
  }
  const std::size_t proof_bytes = kDigestBytes + (side_ == Side::Client ? 1 : 0);
  if (stage_ == Stage::Proof && received.size() >= proof_bytes) {
    answer += take_proof(std::string_view(received).substr(0, proof_bytes));
    received.erase(0, proof_bytes);
    if (side_ == Side::Server && !received.empty()) return fail("it sent more than its proof");
  }
  return answer;
}

std::string Handshake::take_hello(std::string_view hello) {
  const char version = hello[kMagic.size()];
  if (version != kVersion)
    return fail(
        fmt::format("it speaks version {} of lockstep launch's protocol, expected {}; the same Lockstep has to be "
                    "on all nodes",
                    static_cast<int>(version), static_cast<int>(kVersion)));
  if (hello == own_hello_) return fail("it sends back what it is sent");
  peer_hello_ = hello;
  stage_ = Stage::Proof;
  return side_ == Side::Client ? proof_of(Side::Client) : own_hello_;
}

std::string Handshake::take_proof(std::string_view proof) {
  if (side_ == Side::Client) {
    if (proof[0] == kRefused) return fail("it has another secret");
    proof.remove_prefix(1);
  }
  const bool right = is_equal(proof, proof_of(side_ == Side::Client ? Side::Server : Side::Client));
  if (right) stage_ = Stage::Done;
  if (!right) fail("it has another secret");
  if (side_ == Side::Client) return "";
  return right ? std::string(1, kAccepted) + proof_of(Side::Server)
               : std::string(1, kRefused) + std::string(kDigestBytes, '\0');
}

ChannelKeys Handshake::keys() const {
  check(done(), "launch", "the keys of a handshake that is not done");
  const std::string hellos = both();
  const Digest up = hmac(secret_.text(), {"lockstep launch key, client to server", std::string_view(hellos)});
  const Digest down = hmac(secret_.text(), {"lockstep launch key, server to client", std::string_view(hellos)});
  return side_ == Side::Client ? ChannelKeys{.in = down, .out = up} : ChannelKeys{.in = up, .out = down};
}

}  // namespace lockstep::launcher
