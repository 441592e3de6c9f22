// An exact sum of numbers that are not negative, in f64: additions of numbers round nothing, and value() rounds when it
// adds up the words, always in one order. So it depends neither on the order of the numbers nor on the ranks that add
// them: the words of several sums add up, one by one, to those of the sum of all (Kulisch, "Computer arithmetic and
// validity" (2013), chapter 8). One thread.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lockstep::parallel {

class ExactSum {
 public:
  // Word i counts multiples of 2^(32 i - 1074); the last word counts numbers that are not finite. 2^30 additions in all
  // fit: each adds less than 2^33 to a word.
  static constexpr std::size_t kDigits = 68;
  using Words = std::array<std::int64_t, kDigits + 1>;

  void add(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto exponent = static_cast<unsigned>(bits >> 52) & 0x7ff;
    if (exponent == 0x7ff) [[unlikely]] {
      ++words_[kDigits];
      return;
    }
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    const std::uint64_t whole = exponent == 0 ? fraction : fraction | std::uint64_t{1} << 52;
    const unsigned shift = exponent == 0 ? 0 : exponent - 1;
    std::int64_t* const word = words_.data() + shift / 32;
    const unsigned rest = shift % 32;
    const std::uint64_t low = (whole & 0xffffffff) << rest, high = (whole >> 32) << rest;
    word[0] += static_cast<std::int64_t>(low & 0xffffffff);
    word[1] += static_cast<std::int64_t>((low >> 32) + (high & 0xffffffff));
    word[2] += static_cast<std::int64_t>(high >> 32);
  }
  double value() const {
    if (words_[kDigits] != 0) return std::numeric_limits<double>::quiet_NaN();
    Words digits = words_;  // each below 2^32 after the carries
    for (std::size_t i = 0; i + 1 < kDigits; ++i) {
      digits[i + 1] += digits[i] >> 32;
      digits[i] &= 0xffffffff;
    }
    double sum = 0;
    for (std::size_t i = 0; i < kDigits; ++i)
      sum += std::ldexp(static_cast<double>(digits[i]), static_cast<int>(32 * i) - 1074);
    return sum;
  }
  Words& words() { return words_; }

 private:
  Words words_{};
};

}  // namespace lockstep::parallel
