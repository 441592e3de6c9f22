// Fields of a sample joined as channels of one: in front of the spatial sizes, or behind the time.
#include "lockstep/data/join_fields.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

using Values = std::vector<float>;

Values joined(const JoinFields& join, const std::vector<Field>& fields, const std::vector<Values>& values) {
  std::vector<const std::byte*> in;
  for (const Values& v : values) in.push_back(reinterpret_cast<const std::byte*>(v.data()));
  const std::vector<Field> after = join.fields(fields);
  std::vector<Values> results;
  std::vector<std::byte*> out;
  for (const Field& f : after) results.emplace_back(static_cast<std::size_t>(f.shape.elements()));
  for (Values& v : results) out.push_back(reinterpret_cast<std::byte*>(v.data()));
  join.apply({}, fields, in, out);
  return results.front();
}

TEST(JoinFields, PutsChannelsInFront) {
  const std::vector<Field> fields{{"u", {3}, DType::F32}, {"v", {2, 3}, DType::F32}, {"rest", {1}, DType::I32}};
  const JoinFields join({.name = "input", .fields = {"u", "v"}, .spatial_axes = 1});
  const std::vector<Field> after = join.fields(fields);
  ASSERT_EQ(after.size(), 2U);
  EXPECT_EQ(after[0].name, "input");
  EXPECT_EQ(after[0].shape, (Shape{3, 3}));
  EXPECT_EQ(joined(join, fields, {{1, 2, 3}, {4, 5, 6, 7, 8, 9}, {0}}), (Values{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(JoinFields, PutsChannelsBehindTheTime) {
  const std::vector<Field> fields{{"u", {3, 2}, DType::F32}, {"v", {3}, DType::F32}};
  const JoinFields join({.name = "input", .fields = {"u", "v"}, .spatial_axes = 1, .channels_last = true});
  EXPECT_EQ(join.fields(fields)[0].shape, (Shape{3, 3}));
  EXPECT_EQ(joined(join, fields, {{1, 2, 3, 4, 5, 6}, {7, 8, 9}}), (Values{1, 2, 7, 3, 4, 8, 5, 6, 9}));
  EXPECT_EQ(channels_of(fields[0], 1, true), 2);
  EXPECT_EQ(channels_of(fields[1], 1, true), 1);
}

TEST(JoinFields, NumbersHaveNoSizes) {
  const std::vector<Field> fields{{"a", {2}, DType::F32}, {"b", {}, DType::F32}};
  for (const bool last : {false, true}) {
    const JoinFields join({.name = "target", .fields = {"a", "b"}, .channels_last = last});
    EXPECT_EQ(join.fields(fields)[0].shape, (Shape{3}));
    EXPECT_EQ(joined(join, fields, {{1, 2}, {3}}), (Values{1, 2, 3}));
  }
}

TEST(JoinFields, WhatCannotBeJoinedIsNamed) {
  const std::vector<Field> fields{{"u", {3, 2}, DType::F32}, {"v", {4, 2}, DType::F32}, {"w", {1, 3, 2}, DType::F32}};
  EXPECT_THROW(
      JoinFields({.name = "input", .fields = {"u", "v"}, .spatial_axes = 1, .channels_last = true}).fields(fields),
      Error);
  EXPECT_NO_THROW(
      JoinFields({.name = "input", .fields = {"u", "v"}, .spatial_axes = 1}).fields(fields));  // 2 points each
  try {
    JoinFields({.name = "input", .fields = {"u", "w"}, .spatial_axes = 1, .channels_last = true}).fields(fields);
    FAIL() << "3 dimensions were joined with 2";
  } catch (const Error& error) {
    EXPECT_NE(
        std::string(error.what())
            .find("'w' has samples (1, 3, 2), expected 1 spatial dimensions, with or without channels behind them"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockstep::data
