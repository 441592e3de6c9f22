#include "lockstep/train/report/callback_state.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "tests/messages.h"

namespace lockstep::train {
namespace {

TEST(CallbackState, GivesEachValueBackByItsType) {
  CallbackState state;
  state.set("integer", 3);
  state.set("number", 2.5);
  state.set("text", "grün");
  state.set("integer", 4);
  EXPECT_EQ(state.integer("integer"), 4) << "the last value counts";
  EXPECT_EQ(state.number("number"), 2.5);
  EXPECT_EQ(state.text("text"), "grün");
  EXPECT_EQ(error_of([&] { state.number("integer"); }), "[callback state] 'integer' is an integer, expected a number");
  EXPECT_EQ(error_of([&] { state.integer("number"); }), "[callback state] 'number' is a number, expected an integer");
  EXPECT_EQ(error_of([&] { state.text("number"); }), "[callback state] 'number' is a number, expected a text");
  EXPECT_EQ(error_of([&] { state.integer("other"); }), "[callback state] there is no 'other'");
}

TEST(CallbackState, ChecksTheRangeOfIntegers) {
  CallbackState state;
  state.set("count", 7);
  EXPECT_EQ(state.integer("count", 7, 7), 7);
  EXPECT_EQ(error_of([&] { state.integer("count", 0, 6); }), "[callback state] 'count' is 7, expected 0 to 6");
  EXPECT_EQ(error_of([&] { state.integer("count", 8, 9); }), "[callback state] 'count' is 7, expected 8 to 9");
}

TEST(CallbackState, IsSmallAndReadable) {
  CallbackState state;
  const std::string long_name(CallbackState::kLongestName + 1, 'n'), long_text(CallbackState::kLongestText + 1, 't');
  EXPECT_NE(error_of([&] { state.set("", 1); }).find("a value's name is '', expected 1 to 64"), std::string::npos);
  EXPECT_NE(error_of([&] { state.set(long_name, 1); }).find("expected 1 to 64 bytes"), std::string::npos);
  EXPECT_NE(error_of([&] { state.set("\xff", 1); }).find("a value's name is '\\xff'"), std::string::npos);
  EXPECT_EQ(error_of([&] { state.set("x", long_text); }),
            "[callback state] 'x' has 1025 bytes of text, expected at most 1024");
  EXPECT_EQ(error_of([&] { state.set("x", "\xc3"); }), "[callback state] 'x' is '\\xc3', expected text in UTF-8");
  EXPECT_TRUE(state.values().empty());
  for (std::size_t i = 0; i < CallbackState::kMostValues; ++i) state.set("v" + std::to_string(i), 1);
  EXPECT_EQ(error_of([&] { state.set("v", 1); }), "[callback state] 'v' is one value more than the most, 64");
  EXPECT_EQ(error_of([&] { state.set("v3", 2); }), "no error") << "it has that value";
}

}  // namespace
}  // namespace lockstep::train
