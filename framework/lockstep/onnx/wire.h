// The wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding): a message is a list of
// fields, each with its number and kind in front. Only what ONNX's messages have is written.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::onnx {

inline constexpr const char* kSite = "onnx";                           // of errors
inline constexpr std::size_t kMostBytes = (std::size_t{1} << 31) - 1;  // of a message

class Message {
 public:
  void number(int field, std::int64_t value) {
    tag(field, 0);
    varint(static_cast<std::uint64_t>(value));  // a negative number takes ten bytes
  }
  void single(int field, float value) {  // four bytes, the lowest first
    tag(field, 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>((bits >> shift) & 0xff);
  }
  void text(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const Message& value) { text(field, value.bytes_); }
  void numbers(int field, std::span<const std::int64_t> values) {
    for (const std::int64_t value : values) number(field, value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, unsigned kind) { varint((static_cast<std::uint64_t>(field) << 3) | kind); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace lockstep::onnx
