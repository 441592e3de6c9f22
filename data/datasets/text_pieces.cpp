#include "data/datasets/text_pieces.h"

#include <algorithm>
#include <array>

namespace lockstep::datasets {
namespace {

enum class Kind : std::uint8_t { Letter, Number, Space, Other };

struct CodePoint {
  Kind kind;
  std::size_t bytes;
};

bool is_space(std::uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

Kind kind_of(std::uint32_t c) {
  if (is_letter(c)) return Kind::Letter;
  if (is_number(c)) return Kind::Number;
  return is_space(c) ? Kind::Space : Kind::Other;
}

// The code point at the start of a text that is not empty.
CodePoint first(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {kind_of(lead), 1};
  const std::size_t length = lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead >= 0xF5 || length > text.size()) return {Kind::Other, 1};
  std::uint32_t c = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {Kind::Other, 1};
    c = c << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (c < kLeast[length] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return {Kind::Other, 1};
  return {kind_of(c), length};
}

// The bytes of the code points of this kind from `begin` on.
std::size_t run_of(std::string_view text, std::size_t begin, Kind kind) {
  std::size_t end = begin;
  while (end < text.size()) {
    const CodePoint next = first(text.substr(end));
    if (next.kind != kind) break;
    end += next.bytes;
  }
  return end - begin;
}

// The spaces at the start; the last one belongs to the piece behind them unless it is the only one, or nothing follows.
std::size_t spaces(std::string_view text) {
  std::size_t end = 0, last = 0;
  while (end < text.size()) {
    const CodePoint next = first(text.substr(end));
    if (next.kind != Kind::Space) break;
    last = next.bytes;
    end += next.bytes;
  }
  return end == text.size() || end == last ? end : end - last;
}

}  // namespace

std::size_t next_piece(std::string_view text) {
  if (text[0] == '\'') {
    for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (text.starts_with(ending)) return ending.size();
  }
  const std::size_t space = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const Kind kind = first(text.substr(space)).kind;
  return kind == Kind::Space ? spaces(text) : space + run_of(text, space, kind);
}

}  // namespace lockstep::datasets
