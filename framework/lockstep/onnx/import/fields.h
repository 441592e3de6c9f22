// Reads messages in the wire format of Protocol Buffers, which wire.h writes. A reader points into the message, which
// outlives it. Throws Error for bytes that are no message.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lockstep/onnx/wire.h"

namespace lockstep::onnx {

// One field: a number, or for texts, messages and packed lists the bytes.
struct Field {
  enum class Kind : std::uint8_t { Number = 0, Eight = 1, Bytes = 2, Four = 5 };  // as the wire numbers them
  int number = 0;
  Kind kind = Kind::Number;
  std::uint64_t value = 0;  // of all kinds but Bytes
  std::string_view bytes = {};

  std::int64_t whole() const;
  double real() const;  // of four bytes, f32; of eight, f64
  std::string_view text() const;
  // Appends the numbers of a field that is repeated, one by one or packed.
  void append_to(std::vector<std::int64_t>& values) const;
  // The same for f32 (Four) or f64 (Eight).
  void append_to(std::vector<double>& values, Kind packed) const;
};

class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  // Reads the next field; false at the end of the message.
  bool next(Field& field);

 private:
  std::string_view rest_;
};

}  // namespace lockstep::onnx
