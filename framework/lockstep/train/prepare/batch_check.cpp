#include "lockstep/train/prepare/batch_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/finite.h"

namespace lockstep::train {
namespace {

// Returns whether a micro-batch of a shard has exactly one sample; shards and micro-batches differ by at most one
// sample.
bool has_part_of_one(const BatchParts& parts, std::int64_t samples) {
  return samples > 0 && std::max<std::int64_t>(samples / parts.shards, 1) < 2 * parts.accumulate;
}

// Returns whether all shards together have exactly one sample in a micro-batch.
bool has_micro_batch_of_one(const BatchParts& parts, std::int64_t samples) {
  if (samples >= 2 * parts.shards * parts.accumulate) return false;
  for (std::int64_t micro = 0; micro < parts.accumulate; ++micro) {
    std::int64_t together = 0;
    for (std::int64_t shard = 0; shard < parts.shards; ++shard)
      together += part_of(part_of(samples, parts.shards, shard).size(), parts.accumulate, micro).size();
    if (together == 1) return true;
  }
  return false;
}

std::string cut(const BatchParts& parts) {
  std::string text = fmt::format("{} part{}", parts.shards, parts.shards == 1 ? "" : "s (ranks or shards)");
  if (parts.accumulate > 1) text += fmt::format(" of {} micro-batches", parts.accumulate);
  return text;
}

}  // namespace

std::string single_value_norm(std::span<const RunningStatistics> norms, const BatchParts& parts, std::int64_t samples) {
  for (const RunningStatistics& norm : norms) {
    if (norm.per_sample != 1) continue;
    const bool alone = norm.synchronised ? has_micro_batch_of_one(parts, samples) : has_part_of_one(parts, samples);
    if (!alone) continue;
    return fmt::format(
        "[batch_norm2d] {}: a batch of {} sample{} in {} leaves one sample {}. With maps of 1x1 that is one value per "
        "channel, with variance 0, and the step would learn nothing; expected at least 2 samples: choose another size "
        "(--batch-size, --global-batch), or --remainder drop if it is the last batch of an epoch",
        norm.path, samples, samples == 1 ? "" : "s", cut(parts),
        norm.synchronised ? "to all ranks together" : "to some part of it");
  }
  return "";
}

std::string sample_name(const data::Batch& batch, std::int64_t row) {
  const auto& ids = batch.step.samples;
  const auto at = static_cast<std::size_t>(row);
  if (at >= ids.size()) return fmt::format("row {} of this rank's batch", row);
  // Samples of a stream, and of a caller's arrays, have numbers that only we give them.
  if (batch.step.is_streamed()) return fmt::format("row {} of this rank's {}", row, ids.size());
  return fmt::format("sample {} (row {} of this rank's {})", ids[at], row, ids.size());
}

std::int64_t first_bad_row(const Tensor& field, Range rows) {
  if (field.elements() == 0) return -1;
  const std::int64_t each = field.elements() / field.shape()[0];
  const std::byte* first = field.raw() + static_cast<std::size_t>(rows.begin * each) * size_of(field.dtype());
  const std::int64_t at = first_nonfinite(first, field.dtype(), rows.size() * each);
  return at < 0 ? -1 : rows.begin + at / each;
}

}  // namespace lockstep::train
