#include "lockstep/core/printable.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Printable, OrdinaryTextIsAsItWas) {
  for (const char* text : {"", "runs/a b", "layer1.0.conv1.weight (64, 3, 7, 7)", "Köln, 東京, 🙂", "C:\\x\\n"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\x07"), "\\x1b[2J\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\rb\nc\td\x7f"), "a\\rb\\nc\\td\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // C1: some terminals take it for ESC [
}

TEST(Printable, BytesThatAreNoUtf8AreWrittenOut) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("a\x9b"), "a\\x9b");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                    // cut short
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // longer than needed
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe2\x28\xa1"), "\\xe2(\\xa1");
}

TEST(Printable, KnowsUtf8) {
  for (const char* text : {"", "node1", "Köln, 東京, 🙂", "\x1b"}) EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text : {"\xff", "a\x9b", "\xc3", "\xc0\xaf", "\xed\xa0\x80"}) EXPECT_FALSE(is_utf8(text)) << text;
}

TEST(Printable, TextThatRunsBackwardsIsWrittenOut) {
  EXPECT_EQ(printable("a\u202eb\u2066c\u2028"), "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c\\xe2\\x80\\xa8");
}

TEST(Printable, LinesStayLinesWhereTheyAreMeantTo) {
  EXPECT_EQ(printable_lines("a\n\x1b[1mb\r\n\nc\n"), "a\n\\x1b[1mb\\r\n\nc\n");
  EXPECT_EQ(printable_lines(""), "");
}

TEST(Printable, TheLastLineIsWhatWasSaidLast) {
  EXPECT_EQ(last_line("first\nssh: no route\r\n\n"), "ssh: no route");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line("\n"), "");
  EXPECT_EQ(last_line(""), "");
}

}  // namespace
}  // namespace lockstep
