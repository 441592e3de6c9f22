#include "lockstep/data/images/pixel_cache.h"

#include <utility>

namespace lockstep::data {

PixelCache::PixelCache(std::int64_t images, std::size_t most_bytes)
    : most_bytes_(most_bytes), images_(static_cast<std::size_t>(images)) {}

std::shared_ptr<const WholeImage> PixelCache::find(std::int64_t index) const {
  const std::scoped_lock lock(lock_of(index));
  return images_[static_cast<std::size_t>(index)];
}

void PixelCache::keep(std::int64_t index, std::shared_ptr<const WholeImage> image) {
  const std::size_t bytes = sizeof(WholeImage) + image->pixels.values.size();
  std::size_t used = used_;
  do {
    if (bytes > most_bytes_ || used > most_bytes_ - bytes) return;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  const std::scoped_lock lock(lock_of(index));
  std::shared_ptr<const WholeImage>& slot = images_[static_cast<std::size_t>(index)];
  if (slot == nullptr) {
    slot = std::move(image);
  } else {
    used_ -= bytes;  // another thread has decoded it meanwhile
  }
}

}  // namespace lockstep::data
