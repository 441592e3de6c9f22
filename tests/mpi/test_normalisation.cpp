// A normalisation that ranks measure together: the bits of one process's, on all ranks; one error for all.
#include "lockstep/data/normalisation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lockstep/comm/agreement.h"
#include "lockstep/data/array_datasets.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

using namespace data;

// Samples (2, 3) of which number `bad` has a NaN; read() fails on rank `absent` if that is not -1.
FunctionDataset numbers(std::int64_t size, std::int64_t bad = -1, int absent = -1) {
  return FunctionDataset({.size = size,
                          .fields = {{"v", {2, 3}, DType::F32}, {"t", Shape{}, DType::F64}},
                          .description = "numbers",
                          .read = [bad, absent](std::int64_t index, std::span<std::byte* const> out) {
                            check(world().rank() != absent, "numbers", "sample {} cannot be read here", index);
                            float v[6];
                            for (int i = 0; i < 6; ++i)
                              v[i] = static_cast<float>(std::sin(static_cast<double>(6 * index + i)) * (i + 1));
                            if (index == bad) v[4] = std::nanf("");
                            const double t = 1e6 + static_cast<double>(index) / 3;
                            std::memcpy(out[0], v, sizeof v);
                            std::memcpy(out[1], &t, sizeof t);
                          }});
}

const std::vector<NormalisationOptions> kOptions{{.field = "v", .channel_axis = 0},
                                                 {.field = "t", .scaling = Scaling::MinMax, .log_offset = 1.0}};

TEST(MeasuredNormalisation, HasTheBitsOfOneProcess) {
  for (const std::int64_t size : {1, 2, 3, 100, 1024, 3001}) {
    const FunctionDataset set = numbers(size);
    const Normalisation alone = measure_normalisation(set, kOptions);
    EXPECT_EQ(measure_normalisation(set, kOptions, world()), alone) << size;
    EXPECT_EQ(measure_normalisation(set, kOptions, world(), 2), alone) << size;
    const auto texts = world().allgather_strings(alone.text());
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  }
}

TEST(MeasuredNormalisation, WithAllNumbersGivenReadsNothing) {
  const FunctionDataset set = numbers(10, -1, 0);
  const auto entry = measure_normalisation(set, {{.field = "v", .mean = {1}, .stddev = {2}}}, world()).fields()[0];
  EXPECT_EQ(entry.shift[0], 1);
}

TEST(MeasuredNormalisation, ErrorsAreThoseOfAllRanks) {
  const std::string nan = error_of([] { measure_normalisation(numbers(500, 321), kOptions, world()); });
  EXPECT_NE(nan.find("'v': element [1, 1] of sample 321 is nan"), std::string::npos) << nan;
  const std::string absent =
      error_of([] { measure_normalisation(numbers(500, -1, world().size() - 1), kOptions, world()); });
  EXPECT_NE(absent.find("cannot be read here"), std::string::npos) << absent;
  const std::string field = error_of([] { measure_normalisation(numbers(5), {{.field = "w"}}, world()); });
  EXPECT_NE(field.find("no field 'w'"), std::string::npos) << field;
  EXPECT_NO_THROW(measure_normalisation(numbers(5), kOptions, world()));  // the ranks are in step
}

TEST(MeasuredNormalisation, DifferentSizesAreRefused) {
  if (world().size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const std::string error = error_of([] { measure_normalisation(numbers(5 + world().rank()), kOptions, world()); });
  EXPECT_NE(error.find("size of the normalisation's measurement"), std::string::npos) << error;
}

}  // namespace
}  // namespace lockstep::test
