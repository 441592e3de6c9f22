// Texts of users and of checkpoints: fields with slices, applied to an array, and normalisations.
#include "lockstep/data/field_selection.h"

#include <cstdlib>

#include "lockstep/data/normalisation.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  return {bytes_of("v=fields/v[:, 0:2, ::2]:f32"), bytes_of("x[..., -1]"), bytes_of("x[1:, ..., 0:100:3]:i64"),
          bytes_of("density"),
          bytes_of("{\"version\":1,\"fields\":[{\"field\":\"x\",\"log_offset\":null,\"channel_axis\":0,\"shift\":[1,2],"
                   "\"scale\":[0.5,3e-2]}]}")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::expect_answer([&] {
    const data::FieldSelection field = data::parse_field(text);
    const Shape whole{4, 3, 5};
    const auto ranges = data::resolve(field, whole, 0, "fuzz");
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const data::AxisRange& range = ranges[i];
      if (range.begin < 0 || range.count < 1 || range.step < 1) std::abort();
      if ((range.count - 1) > (whole[static_cast<int>(i)] - 1 - range.begin) / range.step) std::abort();
    }
    const std::vector<std::byte> in(60, std::byte{1});
    std::vector<std::byte> out(static_cast<std::size_t>(data::selected_shape(ranges, -1).elements()), std::byte{0});
    data::copy_selected(ranges, whole, 1, in.data(), out.data());
    for (const std::byte byte : out) {
      if (byte != std::byte{1}) std::abort();
    }
  });
  fuzz::expect_answer([&] {
    const data::Normalisation numbers = data::Normalisation::parse(text);
    if (!(data::Normalisation::parse(numbers.text()) == numbers)) std::abort();
  });
  return 0;
}
