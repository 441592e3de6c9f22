#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace lockstep::fuzz {
namespace {

constexpr std::size_t kLongest = 1 << 20;  // of a mutant

struct Block {
  std::ptrdiff_t begin, end;
};

// Where damage strikes: anywhere, and often in the first bytes, where headers are.
std::size_t position(const Bytes& bytes, RandomStream& random) {
  if (bytes.empty()) return 0;
  const std::size_t range = random.below(3) == 0 ? std::min<std::size_t>(bytes.size(), 64) : bytes.size();
  return random.below(static_cast<std::uint32_t>(range));
}

Block block(const Bytes& bytes, RandomStream& random) {
  const std::size_t begin = position(bytes, random);
  const std::size_t longest = std::min<std::size_t>(bytes.size() - begin, random.below(2) == 0 ? 16 : 4096);
  const std::size_t size = longest == 0 ? 0 : 1 + random.below(static_cast<std::uint32_t>(longest));
  return {static_cast<std::ptrdiff_t>(begin), static_cast<std::ptrdiff_t>(begin + size)};
}

void flip_bits(Bytes& bytes, RandomStream& random) {
  if (bytes.empty()) return;
  for (std::uint64_t n = 1 + random.below(8); n > 0; --n)
    bytes[position(bytes, random)] ^= static_cast<std::uint8_t>(1u << random.below(8));
}

void set_byte(Bytes& bytes, RandomStream& random) {
  constexpr std::array<std::uint8_t, 8> kValues{0, 1, 0x7f, 0x80, 0xff, '"', '[', '-'};
  if (!bytes.empty()) bytes[position(bytes, random)] = kValues[random.below(kValues.size())];
}

// A count that is huge, negative or off by one, in two, four or eight bytes of either order.
void set_count(Bytes& bytes, RandomStream& random) {
  const std::array<std::uint64_t, 9> values{0,
                                            1,
                                            0x7fffffff,
                                            0x80000000,
                                            0xffffffff,
                                            0x7fffffffffffffff,
                                            0x8000000000000000,
                                            0xffffffffffffffff,
                                            bytes.size() + random.below(3)};
  const std::uint64_t value = values[random.below(values.size())];
  const std::size_t width = std::size_t{2} << random.below(3), at = position(bytes, random);
  const bool big = random.below(2) == 0;
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
    bytes[at + i] = static_cast<std::uint8_t>(value >> 8 * (big ? width - 1 - i : i));
}

// The same for numbers that are text.
void set_number(Bytes& bytes, RandomStream& random) {
  constexpr std::array<std::string_view, 7> kNumbers{
      "-1", "0", "1e999", "18446744073709551616", "9223372036854775807", "99999999999999999999999", "0x7f"};
  const auto is_digit = [](std::uint8_t c) { return c >= '0' && c <= '9'; };
  const auto begin =
      std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(position(bytes, random)), bytes.end(), is_digit);
  const auto at = bytes.erase(begin, std::find_if_not(begin, bytes.end(), is_digit));
  const std::string_view number = kNumbers[random.below(kNumbers.size())];
  bytes.insert(at, number.begin(), number.end());
}

void truncate(Bytes& bytes, RandomStream& random) { bytes.resize(position(bytes, random)); }

void remove_block(Bytes& bytes, RandomStream& random) {
  const Block b = block(bytes, random);
  bytes.erase(bytes.begin() + b.begin, bytes.begin() + b.end);
}

void double_block(Bytes& bytes, RandomStream& random) {
  const Block b = block(bytes, random);
  const Bytes copy(bytes.begin() + b.begin, bytes.begin() + b.end);
  const auto at = static_cast<std::ptrdiff_t>(position(bytes, random));
  bytes.insert(bytes.begin() + at, copy.begin(), copy.end());
}

void insert_noise(Bytes& bytes, RandomStream& random) {
  Bytes noise(1 + random.below(64));
  std::ranges::generate(noise, [&] { return static_cast<std::uint8_t>(random.below(256)); });
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(position(bytes, random)), noise.begin(), noise.end());
}

// One byte, many times: deep nesting, long names, endless digits.
void repeat_byte(Bytes& bytes, RandomStream& random) {
  constexpr std::string_view kBytes = "[{(\"9.a\n ";
  const auto at = static_cast<std::ptrdiff_t>(position(bytes, random));
  bytes.insert(bytes.begin() + at, std::size_t{1} << random.below(18),
               static_cast<std::uint8_t>(kBytes[random.below(kBytes.size())]));
}

}  // namespace

Bytes Mutator::mutant(std::uint64_t number) const {
  using Change = void (*)(Bytes&, RandomStream&);
  constexpr std::array<Change, 10> kChanges{flip_bits, flip_bits,    set_byte,     set_count,    set_number,
                                            truncate,  remove_block, double_block, insert_noise, repeat_byte};
  RandomStream random(key_, number);
  const auto any = [&]() -> const Bytes& { return inputs_[random.below(static_cast<std::uint32_t>(inputs_.size()))]; };
  Bytes bytes = any();
  for (std::uint64_t n = 1 + random.below(4); n > 0; --n) {
    const std::uint64_t which = random.below(kChanges.size() + 1);
    if (which < kChanges.size()) {
      kChanges[which](bytes, random);
    } else {  // the end of another input behind the beginning of this one
      const Bytes& other = any();
      bytes.resize(position(bytes, random));
      bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(position(other, random)), other.end());
    }
    bytes.resize(std::min(bytes.size(), kLongest));
  }
  return bytes;
}

}  // namespace lockstep::fuzz
