#include "lockstep/io/hdf5_chunk_cache.h"

#include <algorithm>
#include <cstdint>

namespace lockstep::io {
namespace {

std::size_t next_prime(std::size_t n) {
  for (;; ++n) {
    bool prime = n > 1;
    for (std::size_t d = 2; prime && d * d <= n; ++d) prime = n % d != 0;
    if (prime) return n;
  }
}

}  // namespace

// Along an axis of samples, a slab has one sample, which lies in one chunk whatever its number is.
std::size_t touched_chunk_bytes(const Hdf5Info& info, const Hdf5Slab& slab, std::size_t element) {
  std::size_t bytes = element;
  for (std::size_t i = 0; i < info.chunk.size(); ++i) {
    const std::int64_t chunk = std::max<std::int64_t>(info.chunk[i], 1);
    const std::int64_t last = slab.start[i] + (std::max<std::int64_t>(slab.count[i], 1) - 1) * slab.step[i];
    const std::int64_t touched = last / chunk - slab.start[i] / chunk + 1;
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(touched * chunk), &bytes)) return SIZE_MAX;
  }
  return bytes;
}

std::size_t chunk_cache_bytes(const Hdf5Info& info, const Hdf5Slab& slab, const Hdf5ReaderOptions& options) {
  const std::size_t touched = touched_chunk_bytes(info, slab, size_of(info.dtype));
  return std::max(options.chunk_cache, std::min(touched, options.memory / 2));
}

std::size_t cache_share(const Hdf5ReaderOptions& options) { return std::max(options.all_caches, options.chunk_cache); }

std::size_t most_cache_bytes(std::size_t open, const Hdf5ReaderOptions& options) {
  const std::size_t share = cache_share(options);
  return open < options.sets_at_once ? std::max(share, options.memory / 2) : share;
}

// HDF5's manual: about a hundred slots for each chunk in the cache, a prime number of them; eight bytes each.
std::size_t chunk_cache_slots(const Hdf5Info& info, std::size_t bytes) {
  std::size_t chunk = size_of(info.dtype);
  for (const std::int64_t size : info.chunk) chunk *= static_cast<std::size_t>(std::max<std::int64_t>(size, 1));
  return next_prime(std::clamp<std::size_t>(100 * (bytes / std::max<std::size_t>(chunk, 1)), 521, 100003));
}

}  // namespace lockstep::io
