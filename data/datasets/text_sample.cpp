#include "data/datasets/text_sample.h"

#include <cstring>
#include <numbers>

#include "lockstep/core/error.h"

namespace lockstep::datasets {

std::vector<data::Field> text_fields(std::string_view site, std::int64_t context) {
  constexpr std::int64_t kMost = 1 << 20;
  check(context >= 1 && context <= kMost, site, "--context is {}, expected 1 to {}", context, kMost);
  return {
      {"tokens", Shape{context}, DType::I32}, {"targets", Shape{context}, DType::I32}, {"bytes", Shape{}, DType::I32}};
}

void write_text_sample(std::span<const std::int32_t> tokens, std::int64_t bytes, std::span<std::byte* const> out) {
  const std::size_t context = (tokens.size() - 1) * sizeof(std::int32_t);
  std::memcpy(out[0], tokens.data(), context);
  std::memcpy(out[1], tokens.data() + 1, context);
  const auto count = static_cast<std::int32_t>(bytes);
  std::memcpy(out[2], &count, sizeof count);
}

double in_bits(double nats) { return nats / std::numbers::ln2; }

}  // namespace lockstep::datasets
