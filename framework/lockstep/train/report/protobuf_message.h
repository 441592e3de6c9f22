// Protocol Buffers' wire format, the few parts that event files need: a message is written field by field into a string
// of bytes. Field numbers are those of the message's published schema.
// Source: https://protobuf.dev/programming-guides/encoding/. Plain functions and data; any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::train {

// Appends the bytes of a number, the lowest byte first, whatever the order of this machine.
template <class Unsigned>
void append_little_endian(std::string& bytes, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xff);
}

class ProtobufMessage {
 public:
  void add_int(int field, std::int64_t value) {
    add_varint(tag(field, kVarint));
    add_varint(static_cast<std::uint64_t>(value));
  }
  void add_float(int field, float value) {
    add_varint(tag(field, kFixed32));
    append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value));
  }
  void add_double(int field, double value) {
    add_varint(tag(field, kFixed64));
    append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value));
  }
  void add_text(int field, std::string_view value) {  // text, or bytes
    add_varint(tag(field, kLength));
    add_varint(value.size());
    bytes_ += value;
  }
  void add_message(int field, const ProtobufMessage& value) { add_text(field, value.bytes_); }
  void add_doubles(int field, std::span<const double> values) {  // packed
    add_varint(tag(field, kLength));
    add_varint(8 * values.size());
    for (const double value : values) append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value));
  }

  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr std::uint64_t kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;  // wire types
  static std::uint64_t tag(int field, std::uint64_t type) { return (static_cast<std::uint64_t>(field) << 3) | type; }
  void add_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace lockstep::train
