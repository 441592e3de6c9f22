// Scaling and cropping: against a plain reference in f64, and against each other.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/data/augment/geometry.h"
#include "lockstep/data/images/decoded_images.h"
#include "tests/data/image_files.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

AxisPart axis(double begin, double end, std::int64_t total) {
  return {.begin = begin, .end = end, .total = total, .outputs = {0, total}};
}

// The mean of the line's pixels in [begin, end), weighted by a triangle around the output's centre.
double reference(const std::vector<std::uint8_t>& line, double begin, double end, std::int64_t total, std::int64_t i) {
  const double scale = (end - begin) / static_cast<double>(total), reach = std::max(1.0, scale);
  const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
  double sum = 0, weights = 0;
  for (std::size_t x = 0; x < line.size(); ++x) {
    const double at = static_cast<double>(x);
    if (at + 1 <= begin || at >= end) continue;
    const double w = std::max(0.0, 1 - std::abs(at + 0.5 - centre) / reach);
    sum += w * line[x];
    weights += w;
  }
  return sum / weights;
}

std::vector<std::uint8_t> scaled_line(const std::vector<std::uint8_t>& line, const AxisPart& part) {
  const ScaleAxis columns(part, std::ssize(line)), rows(axis(0, 1, 1), 1);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(columns.outputs()));
  scale_channel({.values = line.data(), .region = {{0, 1}, {0, std::ssize(line)}}, .row_stride = std::ssize(line)},
                rows, columns, out.data());
  return out;
}

TEST(ScaleAxis, IsAWeightedMeanOfNeighbours) {
  RandomStream random(3, 0);
  std::vector<std::uint8_t> line(53);
  for (auto& v : line) v = static_cast<std::uint8_t>(random.below(256));
  for (const auto& [begin, end] : std::vector<std::pair<double, double>>{{0, 53}, {5, 6}, {10, 47}, {3.25, 40.5}}) {
    for (const std::int64_t total : {1, 7, 37, 53, 200}) {
      const auto out = scaled_line(line, axis(begin, end, total));
      for (std::int64_t i = 0; i < total; ++i)
        EXPECT_NEAR(out[static_cast<std::size_t>(i)], reference(line, begin, end, total, i), 0.501)
            << begin << "-" << end << " to " << total << " at " << i;
    }
  }
  EXPECT_EQ(scaled_line(line, axis(0, 53, 53)), line) << "the same size";
}

TEST(ScaleAxis, PartsAreThoseOfTheWhole) {
  std::vector<std::uint8_t> line(100);
  std::iota(line.begin(), line.end(), std::uint8_t{11});
  AxisPart part = axis(0, 100, 40);
  const auto whole = scaled_line(line, part);
  part.outputs = {13, 29};
  const auto middle = scaled_line(line, part);
  EXPECT_TRUE(std::ranges::equal(middle, std::span(whole).subspan(13, 16)));
  EXPECT_GE(ScaleAxis(part, 100).inputs().begin, 29);
  EXPECT_LE(ScaleAxis(part, 100).inputs().end, 76);
  const ScaleAxis reduced(axis(20, 60, 10), 25, 4);  // pixels 5 to 15 of 25
  EXPECT_EQ(reduced.inputs(), (Range{5, 15}));
  EXPECT_THROW(ScaleAxis(axis(0, 101, 40), 100), Error);
  EXPECT_THROW(ScaleAxis(axis(5, 5, 40), 100), Error);
  EXPECT_THROW(ScaleAxis(axis(0, 100, 0), 100), Error);
}

TEST(ScaleChannel, RefusesARegionThatIsTooSmall) {
  std::vector<std::uint8_t> line(10), out(4);
  const ScaleAxis rows(axis(0, 1, 1), 1), columns(axis(0, 10, 4), 10);
  EXPECT_THROW(
      scale_channel({.values = line.data(), .region = {{0, 1}, {0, 9}}, .row_stride = 10}, rows, columns, out.data()),
      Error);
}

TEST(Crop, TheCentreIsTorchvisions) {
  RandomStream random(0, 0);
  // 480 x 640 to 256 x 341, of which rows 16 to 240 and columns 58 to 282 stay (58.5 is rounded to the even number).
  const ImagePart part = choose_part({}, 480, 640, random);
  EXPECT_EQ(part.rows.total, 256);
  EXPECT_EQ(part.rows.outputs, (Range{16, 240}));
  EXPECT_EQ(part.columns.total, 341);
  EXPECT_EQ(part.columns.outputs, (Range{58, 282}));
  const ImagePart tall = choose_part({}, 640, 480, random);
  EXPECT_EQ(tall.rows.total, 341);
  EXPECT_EQ(tall.columns.total, 256);
  const ImagePart whole = choose_part({.crop = Crop::Whole, .height = 10, .width = 30}, 480, 640, random);
  EXPECT_EQ(whole.rows.end, 480);
  EXPECT_EQ(whole.columns.outputs, (Range{0, 30}));
}

TEST(Crop, RandomPartsHaveTheAreasAndRatiosThatAreAsked) {
  const CropOptions options{.crop = Crop::Random, .min_area = 0.1, .max_area = 0.6, .min_ratio = 0.5, .max_ratio = 2};
  RandomStream random(1, 2);
  double smallest = 1, largest = 0, top = 1e9, bottom = 0;
  for (int i = 0; i < 2000; ++i) {
    const ImagePart part = choose_part(options, 300, 400, random);
    const double height = part.rows.end - part.rows.begin, width = part.columns.end - part.columns.begin;
    ASSERT_GE(part.rows.begin, 0);
    ASSERT_LE(part.rows.end, 300);
    ASSERT_GE(part.columns.begin, 0);
    ASSERT_LE(part.columns.end, 400);
    const double area = height * width / 120000;
    ASSERT_NEAR(area, std::clamp(area, 0.1, 0.6), 0.01);  // sides are whole pixels
    ASSERT_NEAR(width / height, std::clamp(width / height, 0.5, 2.0), 0.03);
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
    top = std::min(top, part.rows.begin);
    bottom = std::max(bottom, part.rows.end);
  }
  EXPECT_LT(smallest, 0.12);
  EXPECT_GT(largest, 0.57);
  EXPECT_EQ(top, 0);
  EXPECT_EQ(bottom, 300);
}

TEST(Crop, WhereNoRandomPartFitsTheMiddleIsTaken) {
  RandomStream random(1, 2);
  // Ten times too wide for every ratio: the middle 40 of 1000 columns, as no area of 0.9 fits.
  const CropOptions options{
      .crop = Crop::Random, .min_area = 0.9, .max_area = 1, .min_ratio = 0.75, .max_ratio = 4.0 / 3};
  const ImagePart wide = choose_part(options, 30, 1000, random);
  EXPECT_EQ(wide.rows.end - wide.rows.begin, 30);
  EXPECT_EQ(wide.columns.begin, 480);
  EXPECT_EQ(wide.columns.end, 520);
  const ImagePart tall = choose_part(options, 1000, 30, random);
  EXPECT_EQ(tall.rows.end - tall.rows.begin, 40);
  EXPECT_EQ(tall.columns.end - tall.columns.begin, 30);
}

TEST(Crop, RefusesOptionsThatMakeNoSense) {
  EXPECT_THROW(check_crop({.height = 0}), Error);
  EXPECT_THROW(check_crop({.shorter_side = 200}), Error);
  EXPECT_THROW(check_crop({.crop = Crop::Random, .min_area = 0}), Error);
  EXPECT_THROW(check_crop({.crop = Crop::Random, .min_area = 0.5, .max_area = 0.4}), Error);
  EXPECT_THROW(check_crop({.crop = Crop::Random, .min_ratio = 2, .max_ratio = 1}), Error);
  RandomStream random(0, 0);
  expect_error([&] { choose_part({.crop = Crop::Exact, .height = 32, .width = 32}, 32, 33, random); },
               {"32 x 33", "32 x 32"});
}

std::unique_ptr<const ImageFiles> files_of(std::vector<std::vector<std::byte>> files) {
  return std::make_unique<MemoryFiles>(std::move(files));
}

TEST(DecodedImages, ExactImagesAreTheirPixels) {
  const TestImage color = noise_image(6, 5, 3, 1), grey = noise_image(6, 5, 1, 2);
  const DecodedImages set(files_of({encode_png(color), encode_png(grey)}),
                          {.crop = {.crop = Crop::Exact, .height = 6, .width = 5}});
  EXPECT_EQ(set.fields()[0], (Field{"image", {3, 6, 5}, DType::U8}));
  EXPECT_EQ(set.classes(), 3);
  const auto first = sample_of(set, 0), second = sample_of(set, 1);
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t y = 0; y < 6; ++y) {
      for (std::int64_t x = 0; x < 5; ++x) {
        const auto i = static_cast<std::size_t>((c * 6 + y) * 5 + x);
        EXPECT_EQ(first[0][i], color.at(y, x, c));
        EXPECT_EQ(second[0][i], grey.at(y, x, 0));
      }
    }
  }
  EXPECT_EQ(value_of<std::int32_t>(second[1]), 1);
  const DecodedImages one(files_of({encode_png(color), encode_png(grey)}),
                          {.crop = {.crop = Crop::Exact, .height = 6, .width = 5}, .channels = 1});
  EXPECT_EQ(sample_of(one, 1)[0], grey.values);
  const double luma = 0.299 * color.at(3, 2, 0) + 0.587 * color.at(3, 2, 1) + 0.114 * color.at(3, 2, 2);
  EXPECT_NEAR(sample_of(one, 0)[0][17], luma, 0.6);
}

std::vector<Bytes> random_sample(const Dataset& set, std::int64_t index, const SampleKey& key) {
  std::vector<Bytes> fields;
  for (const Field& field : set.fields()) fields.emplace_back(field.bytes());
  std::vector<std::byte*> out;
  for (Bytes& field : fields) out.push_back(reinterpret_cast<std::byte*>(field.data()));
  set.read_random(index, key, out);
  return fields;
}

// Decoding a part is decoding everything and cropping after it: in every kind of crop, for JPEG and PNG.
TEST(DecodedImages, DecodesWhatTheCropTransformMakesOfTheWholeImage) {
  const TestImage image = smooth_image(90, 120, 3, 4);
  for (const Crop crop : {Crop::Whole, Crop::Centre, Crop::Random}) {
    const CropOptions options{.crop = crop, .height = 24, .width = 32, .shorter_side = 40};
    for (const auto& bytes : {encode_jpeg(image), encode_png(image)}) {
      const DecodedImages part(files_of({bytes}), {.crop = options, .reduce = false});
      const DecodedImages whole(files_of({bytes}), {.crop = {.crop = Crop::Exact, .height = 90, .width = 120}});
      const CropImage transform(options);
      EXPECT_EQ(transform.fields(whole.fields())[0], part.fields()[0]);
      for (std::int64_t epoch = 0; epoch < 8; ++epoch) {
        const SampleKey key{.seed = 7, .epoch = epoch, .index = 0};
        const auto expected = random_sample(whole, 0, key);
        Bytes cropped(part.fields()[0].bytes()), label(4);
        const std::byte* in[] = {reinterpret_cast<const std::byte*>(expected[0].data()),
                                 reinterpret_cast<const std::byte*>(expected[1].data())};
        std::byte* out[] = {reinterpret_cast<std::byte*>(cropped.data()), reinterpret_cast<std::byte*>(label.data())};
        transform.apply(key, whole.fields(), in, out);
        EXPECT_EQ(random_sample(part, 0, key)[0], cropped);
      }
    }
  }
}

TEST(DecodedImages, AReducedDecodingIsNearlyTheSame) {
  const TestImage image = smooth_image(400, 520, 3, 4);
  const auto bytes = encode_jpeg(image);
  const CropOptions options{.height = 32, .width = 32, .shorter_side = 40};
  const auto exact = sample_of(DecodedImages(files_of({bytes}), {.crop = options, .reduce = false}), 0);
  const auto fast = sample_of(DecodedImages(files_of({bytes}), {.crop = options}), 0);
  EXPECT_NE(fast[0], exact[0]) << "the image was not reduced";
  double sum = 0;
  for (std::size_t i = 0; i < exact[0].size(); ++i) sum += std::abs(int{exact[0][i]} - int{fast[0][i]});
  EXPECT_LT(sum / static_cast<double>(exact[0].size()), 3);
}

TEST(DecodedImages, RandomCropsDependOnTheKeyAlone) {
  const auto bytes = encode_png(smooth_image(50, 60, 3, 4));
  const DecodedImages set(files_of({bytes, bytes}), {.crop = {.crop = Crop::Random, .height = 20, .width = 20}});
  const auto first = random_sample(set, 0, {.seed = 1, .epoch = 2, .index = 3});
  EXPECT_EQ(random_sample(set, 1, {.seed = 1, .epoch = 2, .index = 3})[0], first[0]);
  EXPECT_NE(random_sample(set, 0, {.seed = 1, .epoch = 3, .index = 3})[0], first[0]);
  EXPECT_NE(random_sample(set, 0, {.seed = 2, .epoch = 2, .index = 3})[0], first[0]);
  EXPECT_NE(random_sample(set, 0, {.seed = 1, .epoch = 2, .index = 4})[0], first[0]);
  EXPECT_EQ(sample_of(set, 1), random_sample(set, 1, {.seed = 0, .epoch = 0, .index = 1}));
}

TEST(DecodedImages, ErrorsNameTheFile) {
  const DecodedImages set(files_of({{}, encode_png(smooth_image(8, 9, 3, 1))}),
                          {.crop = {.crop = Crop::Exact, .height = 8, .width = 8}});
  expect_error([&] { sample_of(set, 0); }, {"file0", "0 bytes"});
  expect_error([&] { sample_of(set, 1); }, {"file1", "8 x 9"});
  expect_error([&] { sample_of(set, 2); }, {"memory", "sample 2", "0 to 1"});
  EXPECT_THROW(DecodedImages(files_of({}), {.channels = 2}), Error);
  EXPECT_THROW(DecodedImages(nullptr, {}), Error);
}

}  // namespace
}  // namespace lockstep::data
