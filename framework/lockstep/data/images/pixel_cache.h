// Decoded images of a data set, whole and of any size, in memory up to a limit of bytes: crops of later epochs read
// their pixels here. None is dropped, for the reason that cached_dataset.h gives. Any thread may call it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "lockstep/data/images/encoded_image.h"

namespace lockstep::data {

struct WholeImage {
  RgbPixels pixels{};  // (row, column, channel), 3 channels, or 1 for grey
  std::int32_t label = 0;
};

class PixelCache {
 public:
  PixelCache(std::int64_t images, std::size_t most_bytes);

  std::shared_ptr<const WholeImage> find(std::int64_t index) const;  // null: it is not there
  // Keeps the image unless the limit is reached, or it is there.
  void keep(std::int64_t index, std::shared_ptr<const WholeImage> image);
  std::size_t bytes() const { return used_; }

 private:
  std::mutex& lock_of(std::int64_t index) const { return locks_[static_cast<std::size_t>(index) % locks_.size()]; }

  std::size_t most_bytes_;
  std::atomic<std::size_t> used_ = 0;
  mutable std::array<std::mutex, 64> locks_;
  std::vector<std::shared_ptr<const WholeImage>> images_;  // each under its lock
};

}  // namespace lockstep::data
