#include "lockstep/kernels/generic/pieces.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::generic {

Pieces::Pieces(std::int64_t rows, std::vector<std::int64_t> widths) : rows_(rows), widths_(std::move(widths)) {
  for (const std::int64_t width : widths_) {
    starts_.push_back(width_);
    width_ += width;
  }
}

// Calls move(piece, byte of the piece, byte of the whole, count) for parts that together are everything.
template <class Move>
void Pieces::for_parts(const Move& move) const {
  parallel_for(rows_ * width_, 1, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t row = begin / width_;
    auto piece =
        static_cast<std::size_t>(std::ranges::upper_bound(starts_, begin - row * width_) - starts_.begin()) - 1;
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t inside = at - row * width_ - starts_[piece];
      const std::int64_t count = std::min(widths_[piece] - inside, end - at);
      if (count > 0) move(piece, row * widths_[piece] + inside, at, static_cast<std::size_t>(count));
      at += count;
      if (++piece == widths_.size()) {
        piece = 0;
        ++row;
      }
    }
  });
}

void Pieces::join(const void* const* pieces, void* whole) const {
  for_parts([&](std::size_t piece, std::int64_t from, std::int64_t to, std::size_t count) {
    std::memcpy(static_cast<std::byte*>(whole) + to, static_cast<const std::byte*>(pieces[piece]) + from, count);
  });
}

void Pieces::cut(const void* whole, void* const* pieces) const {
  for_parts([&](std::size_t piece, std::int64_t to, std::int64_t from, std::size_t count) {
    std::memcpy(static_cast<std::byte*>(pieces[piece]) + to, static_cast<const std::byte*>(whole) + from, count);
  });
}

}  // namespace lockstep::kernels::generic
