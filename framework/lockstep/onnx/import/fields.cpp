#include "lockstep/onnx/import/fields.h"

#include <bit>

#include "lockstep/core/error.h"

namespace lockstep::onnx {
namespace {

constexpr int kMostShift = 63;

// Takes `count` bytes from the front.
std::string_view take(std::string_view& rest, std::uint64_t count) {
  check(count <= rest.size(), kSite, "the file ends inside of a field: {} bytes are left, expected {}", rest.size(),
        count);
  const std::string_view front = rest.substr(0, count);
  rest.remove_prefix(count);
  return front;
}

std::uint64_t take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int shift = 0; shift <= kMostShift; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(rest, 1).front());
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail(kSite, "a number has more than ten bytes, which no file of ONNX has");
}

// Takes `count` bytes as a number, the lowest first.
std::uint64_t take_fixed(std::string_view& rest, int count) {
  const std::string_view bytes = take(rest, static_cast<std::uint64_t>(count));
  std::uint64_t value = 0;
  for (int i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  return value;
}

void require(const Field& field, bool fits, const char* expected) {
  check(fits, kSite, "field {} is of kind {}, expected {}", field.number, static_cast<int>(field.kind), expected);
}

double real_of(std::uint64_t bits, Field::Kind kind) {
  return kind == Field::Kind::Four ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                                   : std::bit_cast<double>(bits);
}

}  // namespace

std::int64_t Field::whole() const {
  require(*this, kind == Kind::Number, "a whole number");
  return static_cast<std::int64_t>(value);
}

double Field::real() const {
  require(*this, kind == Kind::Four || kind == Kind::Eight, "a floating number");
  return real_of(value, kind);
}

std::string_view Field::text() const {
  require(*this, kind == Kind::Bytes, "a text or a message");
  return bytes;
}

void Field::append_to(std::vector<std::int64_t>& values) const {
  if (kind == Kind::Number) {
    values.push_back(whole());
    return;
  }
  for (std::string_view rest = text(); !rest.empty();) values.push_back(static_cast<std::int64_t>(take_varint(rest)));
}

void Field::append_to(std::vector<double>& values, Kind packed) const {
  if (kind != Kind::Bytes) {
    values.push_back(real());
    return;
  }
  for (std::string_view rest = bytes; !rest.empty();)
    values.push_back(real_of(take_fixed(rest, packed == Kind::Four ? 4 : 8), packed));
}

bool Fields::next(Field& field) {
  if (rest_.empty()) return false;
  const std::uint64_t tag = take_varint(rest_);
  field = {.number = static_cast<int>(tag >> 3), .kind = static_cast<Field::Kind>(tag & 7)};
  switch (field.kind) {
    case Field::Kind::Number:
      field.value = take_varint(rest_);
      return true;
    case Field::Kind::Eight:
      field.value = take_fixed(rest_, 8);
      return true;
    case Field::Kind::Four:
      field.value = take_fixed(rest_, 4);
      return true;
    case Field::Kind::Bytes: {
      const std::uint64_t length = take_varint(rest_);
      field.bytes = take(rest_, length);
      return true;
    }
  }
  fail(kSite, "a field has the kind {}, which Protocol Buffers do not have", tag & 7);
}

}  // namespace lockstep::onnx
