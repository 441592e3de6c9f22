#include "lockstep/data/field_selection.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "lockstep/data/convert_array.h"
#include "lockstep/data/file_pattern.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

TEST(FieldSelection, ReadsNamePathSlicesAndType) {
  const FieldSelection plain = parse_field("fields/density");
  EXPECT_EQ(plain, (FieldSelection{.path = "fields/density"}));
  const FieldSelection all = parse_field(" v = fields/v [:, 0:2, ::2, -1, 3:] : f64 ");
  EXPECT_EQ(all.name, "v");
  EXPECT_EQ(all.path, "fields/v");
  EXPECT_EQ(all.dtype, DType::F64);
  EXPECT_FALSE(all.ellipsis.has_value());
  const std::vector<AxisSelection> axes{
      {}, {.begin = 0, .end = 2}, {.step = 2}, {.begin = -1, .index = true}, {.begin = 3}};
  EXPECT_EQ(all.axes, axes);
  EXPECT_EQ(parse_field("density:i32").dtype, DType::I32);
  EXPECT_EQ(parse_field("density:i32").path, "density");
  EXPECT_EQ(parse_field("a:b").path, "a:b");  // a name of HDF5 may have a colon
  EXPECT_EQ(parse_field("x[..., 0]").ellipsis, std::size_t{0});
  EXPECT_EQ(parse_field("x[:, ..., 0]").ellipsis, std::size_t{1});
}

TEST(FieldSelection, MistakesAreNamedWithTheirPosition) {
  struct Row {
    std::string text;
    std::vector<std::string> parts;
  };
  for (const Row& row :
       {Row{"", {"position 0", "path"}}, Row{"=x", {"position 0", "name of a field"}}, Row{"a=", {"path"}},
        Row{"[0]", {"path"}}, Row{"x[]", {"expected a slice"}}, Row{"x[0:2", {"position 5", "',' or ']'"}},
        Row{"x[0:2:0]", {"step is below 1"}}, Row{"x[::-1]", {"step is below 1"}},
        Row{"x[a]", {"position 2", "expected a slice"}}, Row{"x[0 1]", {"position 4", "',' or ']'"}},
        Row{"x[..., ...]", {"a second '...'"}}, Row{"x[99999999999999999999]", {"64 bits"}},
        Row{"x[0]:f16", {"one of the types"}}, Row{"x[0]y", {"position 4", "end of the text"}}}) {
    expect_error([&] { parse_field(row.text); }, row.parts);
  }
}

// The result of NumPy for an array of numbers 0, 1, 2, ... in this shape.
std::vector<std::int32_t> selected(const std::string& text, const Shape& whole, Shape* shape = nullptr) {
  const auto ranges = resolve(parse_field(text), whole, -1, "test");
  std::vector<std::int32_t> values(static_cast<std::size_t>(whole.elements()));
  std::iota(values.begin(), values.end(), 0);
  const Shape part = selected_shape(ranges, -1);
  std::vector<std::int32_t> out(static_cast<std::size_t>(part.elements()), -1);
  copy_selected(ranges, whole, 4, reinterpret_cast<const std::byte*>(values.data()),
                reinterpret_cast<std::byte*>(out.data()));
  if (shape) *shape = part;
  return out;
}

TEST(FieldSelection, SelectsAsNumPyDoes) {
  using Values = std::vector<std::int32_t>;
  Shape shape;
  EXPECT_EQ(selected("x", {2, 3}, &shape), (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(selected("x[1]", {2, 3}, &shape), (Values{3, 4, 5}));
  EXPECT_EQ(shape, Shape({3}));
  EXPECT_EQ(selected("x[:, -1]", {2, 3}), (Values{2, 5}));
  EXPECT_EQ(selected("x[..., -1]", {2, 3}), (Values{2, 5}));
  EXPECT_EQ(selected("x[:, ::2]", {2, 3}, &shape), (Values{0, 2, 3, 5}));
  EXPECT_EQ(shape, Shape({2, 2}));
  EXPECT_EQ(selected("x[1:, -2:100]", {2, 3}), (Values{4, 5}));
  EXPECT_EQ(selected("x[0, ..., 1:3:1]", {2, 2, 4}), (Values{1, 2, 5, 6}));
  EXPECT_EQ(selected("x[0, 1, 2]", {2, 2, 4}, &shape), (Values{6}));
  EXPECT_EQ(shape, Shape());
  EXPECT_EQ(selected("x", {2, 0}, &shape), Values{});
}

TEST(FieldSelection, DoesNotSelectWhatIsNotThere) {
  const auto at = [](const std::string& text, const Shape& whole, std::int64_t axis) {
    resolve(parse_field(text), whole, axis, "run.h5");
  };
  expect_error([&] { at("x[:, 3]", {2, 3}, 0); }, {"run.h5", "'x'", "index 3", "axis 1", "3 elements"});
  expect_error([&] { at("x[:, -4]", {2, 3}, 0); }, {"index -4"});
  expect_error([&] { at("x[:, 5:]", {2, 3}, 0); }, {"no element of axis 1", "3"});
  expect_error([&] { at("x[:, 2:1]", {2, 3}, 0); }, {"no element of axis 1"});
  expect_error([&] { at("x[:, :, :]", {2, 3}, 0); }, {"3 slices", "(2, 3)"});
  expect_error([&] { at("x[0]", {2, 3}, 0); }, {"axis 0 counts samples"});
}

TEST(ConvertArray, RoundsFloatsAndKeepsIntegersExact) {
  const auto convert = [](auto from, auto& to) {
    return convert_array(dtype_of<std::decay_t<decltype(from)>>, reinterpret_cast<const std::byte*>(&from),
                         dtype_of<std::decay_t<decltype(to)>>, reinterpret_cast<std::byte*>(&to), 1);
  };
  float f = 0;
  double d = 0;
  std::int32_t i = 0;
  std::int64_t l = 0;
  std::uint8_t u = 0;
  EXPECT_EQ(convert(0.1, f), -1);
  EXPECT_EQ(f, 0.1F);
  EXPECT_EQ(convert(0.1F, d), -1);
  EXPECT_EQ(d, static_cast<double>(0.1F));
  EXPECT_EQ(convert(1e300, f), 0);
  EXPECT_EQ(convert(std::numeric_limits<double>::infinity(), f), -1);
  EXPECT_EQ(convert(-7.0, i), -1);
  EXPECT_EQ(i, -7);
  EXPECT_EQ(convert(0.5, i), 0);
  EXPECT_EQ(convert(std::nan(""), i), 0);
  EXPECT_EQ(convert(2147483648.0, i), 0);
  EXPECT_EQ(convert(-2147483648.0, i), -1);
  EXPECT_EQ(convert(9223372036854775808.0, l), 0);
  EXPECT_EQ(convert(std::int64_t{1} << 40, i), 0);
  EXPECT_EQ(convert(std::int32_t{255}, u), -1);
  EXPECT_EQ(u, 255);
  EXPECT_EQ(convert(std::int32_t{256}, u), 0);
  EXPECT_EQ(convert(std::int32_t{-1}, u), 0);
  EXPECT_EQ(convert(256.0F, u), 0);
  EXPECT_EQ(convert(std::uint8_t{200}, l), -1);
  EXPECT_EQ(l, 200);
}

TEST(FilePattern, SortsWithinPatternsAndTakesNamesAsTheyAre) {
  const TempDir dir;
  for (const char* name : {"run10.h5", "run2.h5", "run1.h5", "other.h5", "odd[1].h5"}) dir.write(name, {1});
  const auto names = [&](const std::vector<std::string>& patterns) {
    std::vector<std::string> all;
    for (const auto& path : expand_files(patterns, dir.path())) all.push_back(path.filename().string());
    return all;
  };
  EXPECT_EQ(names({"run*.h5"}), (std::vector<std::string>{"run1.h5", "run10.h5", "run2.h5"}));
  EXPECT_EQ(names({"run?.h5", "other.h5"}), (std::vector<std::string>{"run1.h5", "run2.h5", "other.h5"}));
  EXPECT_EQ(names({"odd[1].h5"}), (std::vector<std::string>{"odd[1].h5"}));
  EXPECT_EQ(names({(dir / "other.h5").string()}), (std::vector<std::string>{"other.h5"}));
  expect_error([&] { names({"none*.h5"}); }, {"none*.h5", "no such file"});
  expect_error([&] { names({"run1.h5", "run*.h5"}); }, {"run1.h5", "given twice"});
  expect_error([&] { names({}); }, {"no names"});
  expect_error([&] { names({"."}); }, {"is a folder"});
}

}  // namespace
}  // namespace lockstep::data
