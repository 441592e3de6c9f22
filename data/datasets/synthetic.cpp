#include "data/datasets/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"

namespace lockstep::datasets {
namespace {
constexpr std::int64_t kWindows = 4096;  // positions at which an image can start
constexpr std::int64_t kEval = 128;      // samples of an evaluation that no option limits
}  // namespace

SyntheticDataset::SyntheticDataset(SyntheticOptions options)
    : options_(std::move(options)), fields_{{"image", options_.shape, options_.dtype}, {"label", Shape{}, DType::I32}} {
  data::check_fields("synthetic", fields_);
  check(options_.classes > 0 && options_.classes <= 1 << 30, "synthetic", "{} classes, expected 1 to {}",
        options_.classes, 1 << 30);
  check(options_.size > 0, "synthetic", "size {}, expected at least 1", options_.size);
  check(options_.dtype == DType::U8 || options_.dtype == DType::F32, "synthetic", "dtype {}, expected u8 or f32",
        name_of(options_.dtype));
  pool_ = Tensor({options_.shape.elements() + kWindows}, options_.dtype);
  RandomStream random(mix(options_.seed, hash_name("synthetic")), 0);
  if (options_.dtype == DType::U8) {
    for (std::uint8_t& v : pool_.data<std::uint8_t>()) v = static_cast<std::uint8_t>(random.next() >> 24);
  } else {
    const double half_width = std::sqrt(3.0);
    for (float& v : pool_.data<float>()) v = static_cast<float>(random.uniform(-half_width, half_width));
  }
}

std::string SyntheticDataset::describe() const {
  return formatted("synthetic: {} images {}, {} classes", size(), options_.shape.str(), classes());
}

void SyntheticDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  const Philox random = philox(options_.seed, static_cast<std::uint64_t>(index), hash_name("synthetic sample"));
  const std::size_t window = random[0] % kWindows;
  const std::size_t bytes = fields_[0].bytes();
  if (bytes > 0) std::memcpy(out[0], pool_.raw() + window * size_of(options_.dtype), bytes);
  const auto label = static_cast<std::int32_t>(random[1] % static_cast<std::uint64_t>(options_.classes));
  std::memcpy(out[1], &label, sizeof label);
}

data::DatasetEntry synthetic_entry(const SyntheticOptions& options) {
  const auto open = [options](const data::DatasetOptions& wanted, data::Split split) {
    SyntheticOptions chosen = options;
    if (split == data::Split::Eval && wanted.limit_eval == 0) chosen.size = std::min(options.size, kEval);
    chosen.seed = mix(wanted.seed, split == data::Split::Train ? 0 : 1);
    return std::make_unique<SyntheticDataset>(chosen);
  };
  constexpr float kDeviation = 0.2887f;  // of uniform numbers: 1 / sqrt(12)
  return {.name = "synthetic",
          .description = "built in: random, for timing",
          .open = open,
          .pixels = {.mean = {0.5f}, .stddev = {kDeviation}, .mirrored = true}};
}

}  // namespace lockstep::datasets
