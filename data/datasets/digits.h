// The built-in data set: digits that look like handwriting, 1 x 28 x 28, drawn by a program, so that training needs no
// files. Sample i is a function of (seed, split, i) alone and uses only arithmetic that IEEE 754 rounds exactly (no
// libm), so its bytes are the same on every machine. Strokes are bent, placed, thickened, cluttered and noisy enough
// that a linear model stays near 86 % while a small ConvNet passes 98 %.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/catalogue.h"
#include "lockstep/data/image_dataset.h"

namespace lockstep::datasets {

struct DigitsOptions {
  std::uint64_t seed = 0;
  data::Split split = data::Split::Train;
  std::int64_t size = 12000;
};

inline constexpr std::int64_t kDigitsSide = 28;

// Draws sample `index` into kDigitsSide * kDigitsSide pixels and returns its label. Any thread may call it.
std::int32_t draw_digit(std::uint64_t seed, data::Split split, std::int64_t index, std::span<std::uint8_t> pixels);

// Draws all samples at once (some microseconds each) and returns the data set. Throws Error for a size below 1.
std::unique_ptr<data::ImageDataset> make_digits(const DigitsOptions& options);

// The same samples, drawn when they are first read, in blocks, so that a run of few samples starts at once. Any thread
// may read. Has memory for all samples from the start (784 bytes each).
class DigitsDataset : public data::Dataset {
 public:
  // Throws Error for a size below 1.
  explicit DigitsDataset(const DigitsOptions& options);

  std::int64_t size() const override { return options_.size; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::int64_t classes() const override { return 10; }
  std::string describe() const override;
  std::int32_t label(std::int64_t index) const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

 private:
  static constexpr std::int64_t kBlock = 16;
  std::span<std::uint8_t> pixels(std::int64_t index) const;

  DigitsOptions options_;
  std::vector<data::Field> fields_;
  mutable std::vector<std::uint8_t> pixels_;
  std::unique_ptr<std::once_flag[]> drawn_;  // by block
};

data::DatasetEntry digits_entry();  // 12,000 training and 2,000 evaluation samples

}  // namespace lockstep::datasets
