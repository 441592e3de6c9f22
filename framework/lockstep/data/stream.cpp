#include "lockstep/data/stream.h"

#include <algorithm>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

Transforms all_transforms(const StreamOptions& options) {
  Transforms transforms = options.transforms;
  if (options.floats) transforms.push_back(std::make_shared<ConvertFloats>(*options.floats));
  return transforms;
}

// Returns the first `samples` samples of `tensor`.
Tensor shortened(const Tensor& tensor, std::int64_t samples) {
  Tensor part(tensor.shape().tail().batched(samples), tensor.dtype());
  if (part.bytes() > 0) std::memcpy(part.raw(), tensor.raw(), part.bytes());
  return part;
}

}  // namespace

StreamLoader::StreamLoader(StreamOptions options)
    : options_(std::move(options)),
      pipeline_(options_.fields, all_transforms(options_)),
      maker_(pipeline_),
      memory_(std::max(options_.prefetch, 0) + 1),
      prefetch_({.claim = [this] { return claim(); },
                 .produce = [this](Turn) { return pull_batch(); },
                 .threads = options_.prefetch > 0 ? 1 : 0,
                 .ahead = static_cast<std::size_t>(std::max(options_.prefetch, 1))}) {
  check(options_.pull != nullptr, "stream", "the function `pull` is empty, expected one that fills samples");
  check(options_.batch > 0, "stream", "batch {}, expected at least 1", options_.batch);
  check(options_.prefetch >= 0, "stream", "prefetch {}, expected at least 0", options_.prefetch);
}

std::optional<StreamLoader::Turn> StreamLoader::claim() {
  if (error_) std::rethrow_exception(error_);
  return ended_ ? std::nullopt : std::optional<Turn>(Turn{});
}

std::optional<Batch> StreamLoader::pull_batch() {
  Batch batch{.names = pipeline_.names(), .fields = memory_.take(pipeline_.fields(), options_.batch)};
  batch.step.offset = pulled_;
  std::int64_t count = 0;
  try {
    while (count < options_.batch) {
      std::int64_t id = options_.first_id + (pulled_ + count) * options_.id_stride;
      if (!pull(maker_.source(batch.fields, count), id)) {
        ended_ = true;
        break;
      }
      maker_.transform({.seed = options_.seed, .epoch = 0, .index = id});
      batch.step.samples.push_back(id);
      ++count;
    }
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  if (count == 0) return std::nullopt;
  if (count < options_.batch) {
    for (Tensor& field : batch.fields) field = shortened(field, count);
  }
  pulled_ += count;
  batch.step.global_size = count;
  batch.step.local = {0, count};
  return batch;
}

bool StreamLoader::pull(std::span<std::byte* const> out, std::int64_t& id) const {
  StreamSample sample{.fields = out, .id = id, .types = options_.fields};
  const bool more = options_.pull(sample);
  id = sample.id;
  return more;
}

std::optional<Batch> StreamLoader::next() {
  std::optional<std::optional<Batch>> result = prefetch_.next();
  if (!result || !*result) return std::nullopt;
  consumed_ += (*result)->samples();
  return std::move(*result);
}

}  // namespace lockstep::data
