// The source of a ParameterStore's memory: here the heap, in parallel/exchange/node_memory.h memory that the ranks of a
// node share. Memory is zero at first, aligned, and lives as long as its source. All ranks make the same requests in
// the same order. One thread.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep::plan {

// Zero-filled pages; a page takes memory when it is first written, and returns the memory when it is dropped.
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
  // Makes the whole pages within the bytes [begin, end) zero and returns their memory.
  void drop(std::size_t begin, std::size_t end);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class ParameterMemory {
 public:
  virtual ~ParameterMemory() = default;
  // Memory that this rank writes; other ranks may read it: gradients.
  virtual std::span<std::byte> own(std::size_t bytes) { return from_heap(bytes); }
  // Memory that exists once for ranks that share: values, optimizer state, derived copies.
  virtual std::span<std::byte> common(std::size_t bytes) { return from_heap(bytes); }
  // Whether this rank writes common memory where all ranks would write the same content.
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
