#include "lockstep/core/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "lockstep/core/format.h"

namespace lockstep {
namespace {

struct Character {
  std::size_t bytes = 1;
  std::uint32_t code = 0;
  bool valid = false;
};

// The first character of `text`, which is not empty; not valid where its bytes are no UTF-8 (RFC 3629).
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {1, lead, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return {};
  return {bytes, code, true};
}

bool is_shown(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool direction = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0x200e ||
                         code == 0x200f || code == 0x61c;
  const bool breaks_line = code == 0x2028 || code == 0x2029;
  return !control && !direction && !breaks_line;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character c = first_character(text);
    if (!c.valid) return false;
    text.remove_prefix(c.bytes);
  }
  return true;
}

std::string printable(std::string_view text) {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7f; };
  if (std::ranges::all_of(text, plain)) return std::string(text);
  std::string shown;
  while (!text.empty()) {
    const Character c = first_character(text);
    const std::string_view bytes = text.substr(0, c.bytes);
    if (c.valid && is_shown(c.code)) {
      shown += bytes;
    } else if (bytes == "\n" || bytes == "\r" || bytes == "\t") {
      shown += bytes == "\n" ? "\\n" : bytes == "\r" ? "\\r" : "\\t";
    } else {
      for (char b : bytes) shown += formatted("\\x{:02x}", static_cast<std::uint8_t>(b));
    }
    text.remove_prefix(c.bytes);
  }
  return shown;
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  while (true) {
    const std::size_t end = text.find('\n');
    shown += printable(text.substr(0, end));
    if (end == std::string_view::npos) return shown;
    shown += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of("\r\n") + 1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace lockstep
