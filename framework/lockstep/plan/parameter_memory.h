// Where a ParameterStore's memory comes from: here from the heap, in parallel/node_memory.h from what the ranks of a
// node share. Memory is zero at first, aligned, and lives as long as its source. All ranks ask for the same things in
// the same order; one thread.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep::plan {

// Zero-filled pages that take no memory until they are written, and give it back when they are dropped.
class LazyPages {
 public:
  LazyPages() = default;
  explicit LazyPages(std::size_t bytes);
  ~LazyPages();
  LazyPages(LazyPages&& other) noexcept { *this = std::move(other); }
  LazyPages& operator=(LazyPages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  std::byte* data() const { return data_; }
  // Whole pages within the bytes [begin, end) are zero again.
  void drop(std::size_t begin, std::size_t end);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class ParameterMemory {
 public:
  virtual ~ParameterMemory() = default;
  // A rank's own, though others may read it: gradients.
  virtual std::span<std::byte> own(std::size_t bytes) { return from_heap(bytes); }
  // What ranks hold once if they share: values, optimizer state, derived copies.
  virtual std::span<std::byte> common(std::size_t bytes) { return from_heap(bytes); }
  // Whether this rank writes common memory where all would write the same.
  virtual bool fills_common() const { return true; }
  virtual bool shares() const { return false; }

 protected:
  std::span<std::byte> from_heap(std::size_t bytes) {
    heap_.push_back(allocate_aligned(bytes));
    return {heap_.back().get(), bytes};
  }

 private:
  std::vector<AlignedBuffer> heap_;
};

}  // namespace lockstep::plan
