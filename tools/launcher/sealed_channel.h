// Messages on a connection whose two sides have keys (handshake.h). A message is sealed with an HMAC over its number,
// its kind and its content, so that one that is changed, left out, repeated, or put elsewhere is noticed before
// anything of it is used. It is not encrypted. One thread.
//
//   length of the body (4, most significant byte first), kind (1), body, HMAC (32)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/launcher/handshake.h"

namespace lockstep::launcher {

enum class Kind : std::uint8_t { Join = 1, Welcome, Refused, Run, Output, Ended, Signal, Done };

struct Message {
  Kind kind = Kind::Done;
  std::string body{};
};

class SealedChannel {
 public:
  static constexpr std::size_t kMostBytes = 1 << 20;  // of a body

  explicit SealedChannel(ChannelKeys keys) : keys_(keys) {}

  // The bytes of the next message to send. Throws Error for a body of more than kMostBytes.
  std::string seal(const Message& message);
  // Bytes that came, in pieces of any size.
  void receive(std::string_view bytes) { received_ += bytes; }
  // The next message that is whole. Throws Error for one that is not as it was sent; nothing that follows can be
  // trusted then.
  std::optional<Message> next();

 private:
  ChannelKeys keys_;
  std::string received_;
  std::uint64_t sent_ = 0, opened_ = 0;
};

}  // namespace lockstep::launcher
