// The library's own formatting gives the text that fmt gives; check() formats only on failure.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/format.h"

namespace lockstep {
namespace {

TEST(Format, GivesTheTextThatFmtGives) {
  const std::string text = "a text";
  const char* const words = "words";
  EXPECT_EQ(formatted("nothing"), "nothing");
  EXPECT_EQ(formatted("{{}} {}", 1), "{} 1");
  EXPECT_EQ(formatted("{} {} {} {}", text, words, std::string_view("view"), 'c'),
            fmt::format("{} {} {} {}", text, words, std::string_view("view"), 'c'));
  EXPECT_EQ(formatted("{} {}", true, false), fmt::format("{} {}", true, false));
  EXPECT_EQ(formatted("{} {} {}", 0.1f, 0.1, 1e300), fmt::format("{} {} {}", 0.1f, 0.1, 1e300));
  EXPECT_EQ(formatted("{:.3g} {:8.2f}|{:<6}|{:>6}|{:^6}", 1.23456, 2.5, "l", "r", "m"),
            fmt::format("{:.3g} {:8.2f}|{:<6}|{:>6}|{:^6}", 1.23456, 2.5, "l", "r", "m"));
  EXPECT_EQ(formatted("{:#010x} {:016x} {:+d}", 48879, std::uint64_t{0xdeadbeef}, 7),
            fmt::format("{:#010x} {:016x} {:+d}", 48879, std::uint64_t{0xdeadbeef}, 7));
  EXPECT_EQ(formatted("{:>{}}|{:.{}}", text, 9, 0.123456, 2), fmt::format("{:>{}}|{:.{}}", text, 9, 0.123456, 2));
  EXPECT_EQ(formatted("{} {} {}", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::uint64_t>::max(),
                      std::uint8_t{200}),
            "-9223372036854775808 18446744073709551615 200");
}

TEST(Format, TakesNoTextThatIsNull) { EXPECT_EQ(formatted("{}", static_cast<const char*>(nullptr)), "(null)"); }

TEST(Format, JoinsTheElementsOfARange) {
  EXPECT_EQ(joined(std::array{1, 2, 3}, ", "), "1, 2, 3");
  EXPECT_EQ(joined(std::vector<std::string>{"", "{}", "b"}, "{}"), "{}{}{}b");
  EXPECT_EQ(joined(std::vector<int>{}, ", "), "");
}

TEST(Format, FailsWithPlaceAndMessage) {
  check(true, "place", "never formatted: {}", static_cast<const char*>(nullptr));
  try {
    check(false, "conv2d", "input has {} channels, weight expects {}", 32, 64);
    FAIL() << "check(false, ...) returned";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[conv2d] input has 32 channels, weight expects 64");
  }
}

}  // namespace
}  // namespace lockstep
