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
  check(!options_.reservoir || options_.reservoir->fields() == options_.fields, "stream",
        "the reservoir has other fields than the stream, expected the same");
  check(options_.prefetch >= 0, "stream", "prefetch {}, expected at least 0", options_.prefetch);
}

std::optional<StreamLoader::Turn> StreamLoader::claim() {
  if (error_) std::rethrow_exception(error_);
  return ended_ ? std::nullopt : std::optional<Turn>(Turn{});
}

// Begins a batch with past samples.
void StreamLoader::replay(Batch& batch) {
  if (!options_.reservoir) return;
  const Reservoir& past = *options_.reservoir;
  const std::int64_t turn = past.made();
  for (const std::int64_t slot : past.draw(options_.batch)) {
    const std::int64_t id = past.read(slot, maker_.source(batch.fields, batch.samples()));
    maker_.transform({.seed = options_.seed, .epoch = 1 + turn, .index = id});
    batch.step.samples.push_back(id);
  }
}

std::optional<StreamLoader::Pulled> StreamLoader::pull_batch() {
  Batch batch{.names = pipeline_.names(), .fields = memory_.take(pipeline_.fields(), options_.batch)};
  batch.step.offset = pulled_;
  std::int64_t fresh = 0;
  try {
    replay(batch);
    for (; batch.samples() < options_.batch; ++fresh) {
      std::int64_t id = options_.first_id + (pulled_ + fresh) * options_.id_stride;
      const std::span<std::byte* const> sample = maker_.source(batch.fields, batch.samples());
      if (stop_.stop_requested() || !pull(sample, id)) {
        ended_ = true;
        break;
      }
      if (options_.reservoir) options_.reservoir->put(id, sample);
      maker_.transform({.seed = options_.seed, .epoch = 0, .index = id});
      batch.step.samples.push_back(id);
    }
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  if (fresh == 0) return std::nullopt;
  if (options_.reservoir) options_.reservoir->end_batch();
  if (batch.samples() < options_.batch) {
    for (Tensor& field : batch.fields) field = shortened(field, batch.samples());
  }
  pulled_ += fresh;
  batch.step.global_size = batch.samples();
  batch.step.local = {0, batch.samples()};
  return Pulled{std::move(batch), pulled_};
}

bool StreamLoader::pull(std::span<std::byte* const> out, std::int64_t& id) const {
  StreamSample sample{.fields = out, .id = id, .types = options_.fields, .stop = stop_.get_token()};
  const bool more = options_.pull(sample);
  id = sample.id;
  return more;
}

std::optional<Batch> StreamLoader::next() {
  std::optional<std::optional<Pulled>> result = prefetch_.next();
  if (!result || !*result) return std::nullopt;
  consumed_ = (*result)->after;
  if (options_.reservoir) options_.reservoir->release();
  return std::move((*result)->batch);
}

}  // namespace lockstep::data
