#include "lockstep/data/normalisation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/data/array_datasets.h"
#include "lockstep/data/pipeline.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

double wave(std::size_t i) { return 3 + std::sin(static_cast<double>(i) * 0.7) * 2; }

// "v": 50 samples (2 channels, 3); the second channel is a hundred times the first. "n": bytes.
std::unique_ptr<TensorDataset> waves(std::size_t samples = 50) {
  std::vector<float> v;
  std::vector<std::uint8_t> n;
  for (std::size_t s = 0; s < samples; ++s) {
    for (std::size_t c = 0; c < 2; ++c) {
      for (std::size_t i = 0; i < 3; ++i) v.push_back(static_cast<float>(wave(6 * s + 3 * c + i) * (c == 0 ? 1 : 100)));
    }
    n.push_back(static_cast<std::uint8_t>(s % 200));
  }
  const auto count = static_cast<std::int64_t>(samples);
  std::vector<NamedTensor> tensors;
  tensors.push_back({"v", Tensor::from<float>({count, 2, 3}, v)});
  tensors.push_back({"n", Tensor::from<std::uint8_t>({count}, n)});
  return std::make_unique<TensorDataset>(std::move(tensors));
}

// All values of one channel of "v".
std::vector<double> channel(const Dataset& set, std::size_t c) {
  std::vector<double> values;
  for (std::int64_t s = 0; s < set.size(); ++s) {
    float v[6];
    std::memcpy(v, sample_of(set, s)[0].data(), sizeof v);
    for (std::size_t i = 0; i < 3; ++i) values.push_back(static_cast<double>(v[3 * c + i]));
  }
  return values;
}

TEST(Normalisation, MeasuresMeanAndDeviationPerChannel) {
  const auto set = waves();
  const auto entry = measure_normalisation(*set, {{.field = "v", .channel_axis = 0}}).fields().at(0);
  ASSERT_EQ(entry.shift.size(), 2u);
  for (std::size_t c = 0; c < 2; ++c) {
    const auto values = channel(*set, c);
    double mean = 0, squares = 0;
    for (const double v : values) mean += v / static_cast<double>(values.size());
    for (const double v : values) squares += (v - mean) * (v - mean) / static_cast<double>(values.size());
    EXPECT_NEAR(entry.shift[c], mean, 1e-12 * std::abs(mean));
    EXPECT_NEAR(entry.scale[c], std::sqrt(squares), 1e-12 * std::sqrt(squares));
  }
  const auto whole = measure_normalisation(*set, {{.field = "v"}}).fields().at(0);
  ASSERT_EQ(whole.shift.size(), 1u);
  EXPECT_NEAR(whole.shift[0], (entry.shift[0] + entry.shift[1]) / 2, 1e-9);
}

TEST(Normalisation, KeepsItsDigitsFarFromZero) {
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) values.push_back(1e9 + (i % 2));
  std::vector<NamedTensor> tensors;
  tensors.push_back({"x", Tensor::from<double>({3000}, values)});
  const TensorDataset set(std::move(tensors));
  const auto entry = measure_normalisation(set, {{.field = "x"}}).fields().at(0);
  EXPECT_NEAR(entry.shift[0], 1e9 + 0.5, 1e-6);
  EXPECT_NEAR(entry.scale[0], 0.5, 1e-7);  // a difference of squares would have an error of hundreds
}

TEST(Normalisation, MeasuresRangesAndLogarithms) {
  const auto set = waves();
  const auto measured = measure_normalisation(*set, {{.field = "v", .scaling = Scaling::MinMax, .channel_axis = 0},
                                                     {.field = "n", .scaling = Scaling::MeanStd, .log_offset = 1.0}});
  const auto values = channel(*set, 1);
  EXPECT_EQ(measured.find("v")->shift[1], *std::ranges::min_element(values));
  EXPECT_EQ(measured.find("v")->scale[1], *std::ranges::max_element(values) - *std::ranges::min_element(values));
  double mean = 0;
  for (int i = 0; i < 50; ++i) mean += std::log(i + 1.0) / 50;
  EXPECT_NEAR(measured.find("n")->shift[0], mean, 1e-12);
  EXPECT_EQ(measured.find("n")->log_offset, 1.0);
  EXPECT_EQ(measured.find("other"), nullptr);
}

TEST(Normalisation, ThreadsAndBlocksDoNotChangeABit) {
  const auto set = waves(2500);  // more than the 1024 blocks
  const std::vector<NormalisationOptions> options{{.field = "v", .channel_axis = 0}, {.field = "n"}};
  const Normalisation one = measure_normalisation(*set, options);
  for (const int threads : {2, 3, 7}) EXPECT_EQ(measure_normalisation(*set, options, threads), one);
}

TEST(Normalisation, GivenNumbersAreTaken) {
  const auto set = waves();
  const auto entry =
      measure_normalisation(*set, {{.field = "v", .channel_axis = 0, .mean = {1, 2}, .stddev = {3, 4}}}).fields()[0];
  EXPECT_EQ(entry.shift, (std::vector<double>{1, 2}));
  EXPECT_EQ(entry.scale, (std::vector<double>{3, 4}));
  const auto fails = [&](const NormalisationOptions& options, const std::vector<std::string>& parts) {
    expect_error([&] { measure_normalisation(*set, {options}); }, parts);
  };
  fails({.field = "v", .channel_axis = 0, .mean = {1, 2, 3}, .stddev = {1, 1, 1}}, {"'v'", "3 means", "2 channels"});
  fails({.field = "v", .mean = {1}}, {"1 means and 0"});
  fails({.field = "v", .scaling = Scaling::MinMax, .mean = {1}, .stddev = {1}}, {"a mean is given"});
  fails({.field = "v", .mean = {1}, .stddev = {0}}, {"scale 0"});
  fails({.field = "w"}, {"no field 'w'"});
  fails({.field = "v", .channel_axis = 2}, {"channel axis 2", "(2, 3)"});
  fails({.field = "n", .log_offset = 0.0}, {"'n'", "element 0 of sample 0", "above 0 for log"});
}

TEST(Normalisation, SaysWhereAValueIsNotFinite) {
  std::vector<NamedTensor> tensors;
  tensors.push_back({"x", Tensor::from<float>({2, 2}, std::vector<float>{1, 2, 3, std::nanf("")})});
  const TensorDataset set(std::move(tensors));
  expect_error([&] { measure_normalisation(set, {{.field = "x"}}); }, {"'x'", "element 1 of sample 1", "nan"});
  tensors.clear();
  tensors.push_back({"x", Tensor::from<float>({1, 2, 3}, std::vector<float>{1, 2, 3, 4, 5, std::nanf("")})});
  const TensorDataset grid(std::move(tensors));
  expect_error([&] { measure_normalisation(grid, {{.field = "x"}}); }, {"'x'", "element [1, 2] of sample 0", "nan"});
}

TEST(Normalisation, ConstantChannelsGetScaleOne) {
  std::vector<NamedTensor> tensors;
  tensors.push_back({"x", Tensor::from<float>({3}, std::vector<float>{0.1F, 0.1F, 0.1F})});
  const TensorDataset set(std::move(tensors));
  for (const Scaling scaling : {Scaling::MeanStd, Scaling::MinMax}) {
    const auto entry = measure_normalisation(set, {{.field = "x", .scaling = scaling}}).fields()[0];
    EXPECT_EQ(entry.scale[0], 1);
    EXPECT_EQ(entry.shift[0], static_cast<double>(0.1F));
  }
}

TEST(Normalise, TransformsNamedFieldsAndCopiesOthers) {
  const auto set = waves();
  const Normalisation numbers({{.field = "v", .channel_axis = 0, .shift = {3, 300}, .scale = {2, 200}},
                               {.field = "n", .shift = {1}, .scale = {2}}});
  const Normalise transform(numbers, DType::F64);
  const auto fields = transform.fields(set->fields());
  EXPECT_EQ(fields, (std::vector<Field>{{"v", {2, 3}, DType::F32}, {"n", Shape{}, DType::F64}}));
  const auto sample = sample_of(*set, 7);
  float out[6];
  double n = 0;
  const std::byte* in[] = {reinterpret_cast<const std::byte*>(sample[0].data()),
                           reinterpret_cast<const std::byte*>(sample[1].data())};
  std::byte* to[] = {reinterpret_cast<std::byte*>(out), reinterpret_cast<std::byte*>(&n)};
  transform.apply({}, set->fields(), in, to);
  float v[6];
  std::memcpy(v, sample[0].data(), sizeof v);
  for (std::size_t i = 0; i < 6; ++i) {
    const double shift = i < 3 ? 3 : 300, scale = i < 3 ? 2 : 200;
    EXPECT_EQ(out[i], static_cast<float>((static_cast<double>(v[i]) - shift) / scale));
  }
  EXPECT_EQ(n, 3);  // (7 - 1) / 2
  const Normalise only(Normalisation({{.field = "n", .shift = {1}, .scale = {2}}}));
  EXPECT_EQ(only.fields(set->fields())[0].dtype, DType::F32);
  float copied[6];
  float number = 0;
  std::byte* others[] = {reinterpret_cast<std::byte*>(copied), reinterpret_cast<std::byte*>(&number)};
  only.apply({}, set->fields(), in, others);
  EXPECT_EQ(std::memcmp(copied, v, sizeof v), 0);
  EXPECT_EQ(number, 3);
  expect_error([&] { Normalise(Normalisation({{.field = "w", .shift = {0}, .scale = {1}}})).fields(set->fields()); },
               {"no field 'w'"});
  expect_error(
      [&] {
        Normalise(Normalisation({{.field = "v", .channel_axis = 1, .shift = {0, 0}, .scale = {1, 1}}}))
            .fields(set->fields());
      },
      {"2 channels", "axis 1", "has 3"});
}

TEST(Normalise, NormalisedDataHaveMeanZeroAndVarianceOne) {
  const auto set = waves();
  const Normalisation measured = measure_normalisation(*set, {{.field = "v", .log_offset = 0.5, .channel_axis = 0}});
  double sum = 0, squares = 0;
  for (std::int64_t s = 0; s < set->size(); ++s) {
    float v[6];
    std::memcpy(v, sample_of(*set, s)[0].data(), sizeof v);
    const Tensor batch = measured.apply("v", Tensor::from<float>({1, 2, 3}, v));
    for (std::size_t i = 0; i < 3; ++i) {
      const double x = static_cast<double>(batch.data<float>()[i]);
      sum += x;
      squares += x * x;
    }
  }
  EXPECT_NEAR(sum / 150, 0, 1e-6);
  EXPECT_NEAR(squares / 150, 1, 1e-6);
}

TEST(Normalisation, PredictionsAreRestored) {
  const Normalisation numbers(
      {{.field = "v", .log_offset = 0.25, .channel_axis = 0, .shift = {0.5, -1}, .scale = {2, 3}},
       {.field = "w", .shift = {10}, .scale = {4}}});
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 0.5, 0.25};
  const Tensor normal = numbers.apply("v", Tensor::from<double>({2, 2, 2}, values));
  EXPECT_DOUBLE_EQ(normal.data<double>()[3], (std::log(4.25) + 1) / 3);
  const Tensor back = numbers.restore("v", normal.clone());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(back.data<double>()[i], values[i], 1e-12);
  EXPECT_EQ(numbers.restore("w", Tensor::from<float>({1}, std::vector<float>{0.5F})).data<float>()[0], 12);
  EXPECT_EQ(numbers.restore("other", Tensor::from<float>({1}, std::vector<float>{0.5F})).data<float>()[0], 0.5F);
  expect_error([&] { numbers.restore("v", Tensor({1, 3, 2}, DType::F32)); }, {"2 channels", "has 3"});
  expect_error([&] { numbers.apply("v", Tensor({1, 2, 1}, DType::I32)); }, {"'v'", "i32"});
  expect_error(
      [&] {
        numbers.apply("v", Tensor::from<float>({1, 2}, std::vector<float>{1, -1}));
      },
      {"'v'", "element 1 of sample 0", "-0.75"});
}

TEST(Normalisation, TextBringsTheSameBitsBack) {
  const Normalisation numbers(
      {{.field = "v \"x\"", .log_offset = 1e-3, .channel_axis = 1, .shift = {0.1, -1e300}, .scale = {1.0 / 3, 5e-324}},
       {.field = "w", .shift = {0}, .scale = {1}}});
  EXPECT_EQ(Normalisation::parse(numbers.text()), numbers);
  EXPECT_EQ(Normalisation::parse(Normalisation().text()), Normalisation());
  for (const std::string text :
       {"", "{}", "[]", "{\"version\": 2, \"fields\": []}", "{\"version\": 1, \"fields\": 3}",
        "{\"version\": 1, \"fields\": [{\"field\": 1}]}",
        "{\"version\": 1, \"fields\": [{\"field\": \"x\", \"channel_axis\": -1, \"log_offset\": null, \"shift\": [0], "
        "\"scale\": [0]}]}",
        "{\"version\": 1, \"fields\": [{\"field\": \"x\", \"channel_axis\": -1, \"log_offset\": null, \"shift\": "
        "[\"a\"], "
        "\"scale\": [1]}]}"}) {
    expect_error([&] { Normalisation::parse(text); }, {"[normalisation]"});
  }
}

}  // namespace
}  // namespace lockstep::data
