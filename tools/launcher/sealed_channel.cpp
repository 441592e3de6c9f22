#include "tools/launcher/sealed_channel.h"

#include "lockstep/core/error.h"

namespace lockstep::launcher {
namespace {

constexpr std::size_t kLengthBytes = 4, kHeaderBytes = kLengthBytes + 1;

std::string big_endian(std::uint64_t value, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[bytes - 1 - i] = static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

std::size_t length_of(std::string_view header) {
  std::size_t length = 0;
  for (const char byte : header.substr(0, kLengthBytes)) length = length << 8 | static_cast<unsigned char>(byte);
  return length;
}

Digest digest_of(const Digest& key, std::uint64_t number, std::string_view header_and_body) {
  return hmac(view(key), {std::string_view(big_endian(number, 8)), header_and_body});
}

}  // namespace

std::string SealedChannel::seal(const Message& message) {
  check(message.body.size() <= kMostBytes, "launch", "a message of {} bytes, expected at most {}", message.body.size(),
        kMostBytes);
  std::string text = big_endian(message.body.size(), kLengthBytes) + static_cast<char>(message.kind) + message.body;
  text += view(digest_of(keys_.out, sent_++, text));
  return text;
}

std::optional<Message> SealedChannel::next() {
  if (received_.size() < kHeaderBytes) return std::nullopt;
  const std::size_t length = length_of(received_);
  check(length <= kMostBytes, "launch", "a message of {} bytes is announced, expected at most {}", length, kMostBytes);
  const std::size_t sealed = kHeaderBytes + length;
  if (received_.size() < sealed + kDigestBytes) return std::nullopt;
  const std::string_view text(received_);
  const Digest digest = digest_of(keys_.in, opened_, text.substr(0, sealed));
  check(is_equal(view(digest), text.substr(sealed, kDigestBytes)), "launch",
        "message {} of the connection is not as it was sent", opened_);
  ++opened_;
  Message message{static_cast<Kind>(text[kLengthBytes]), std::string(text.substr(kHeaderBytes, length))};
  received_.erase(0, sealed + kDigestBytes);
  return message;
}

}  // namespace lockstep::launcher
