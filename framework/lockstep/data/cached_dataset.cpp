#include "lockstep/data/cached_dataset.h"

#include <algorithm>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::data {

CachedDataset::CachedDataset(std::shared_ptr<const Dataset> whole, std::size_t most_bytes)
    : DatasetView(std::move(whole), "cache"), most_bytes_(most_bytes) {
  check(!is_random(), "cache", "{} makes random choices while it reads, which copies of its samples would repeat",
        describe());
  for (const Field& field : fields()) sample_bytes_ += field.bytes();
  samples_.resize(static_cast<std::size_t>(size()));
}

bool CachedDataset::copy_cached(std::int64_t index, std::span<std::byte* const> out) const {
  const std::scoped_lock lock(lock_of(index));
  const std::byte* from = samples_[static_cast<std::size_t>(index)].get();
  if (from == nullptr) return false;
  for (std::size_t i = 0; i < fields().size(); ++i) {
    const std::size_t bytes = fields()[i].bytes();
    if (bytes > 0) std::memcpy(out[i], from, bytes);
    from += bytes;
  }
  return true;
}

bool CachedDataset::reserve() const {
  std::size_t used = used_;
  do {
    if (sample_bytes_ > most_bytes_ || used > most_bytes_ - sample_bytes_) return false;
  } while (!used_.compare_exchange_weak(used, used + sample_bytes_));
  return true;
}

void CachedDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  if (copy_cached(index, out)) return;
  whole().read(index, out);
  if (!reserve()) return;
  auto copy = std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(sample_bytes_, 1));
  std::byte* to = copy.get();
  for (std::size_t i = 0; i < fields().size(); ++i) {
    const std::size_t bytes = fields()[i].bytes();
    if (bytes > 0) std::memcpy(to, out[i], bytes);
    to += bytes;
  }
  const std::scoped_lock lock(lock_of(index));
  std::unique_ptr<std::byte[]>& sample = samples_[static_cast<std::size_t>(index)];
  if (sample != nullptr) {
    used_ -= sample_bytes_;  // another thread has read the sample in the meantime
  } else {
    sample = std::move(copy);
  }
}

}  // namespace lockstep::data
