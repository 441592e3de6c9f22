// Memory of zeros from the system, on huge pages where the system has them: rows that are read at random places then
// miss fewer entries of the address cache. Pages take no memory before they are written. A move-only value.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>

namespace lockstep::parallel {

class ZeroPages {
 public:
  ZeroPages() : memory_(nullptr, Unmap{0}) {}
  // Throws std::bad_alloc where the system has no address space for them.
  explicit ZeroPages(std::size_t bytes) : memory_(nullptr, Unmap{bytes}) {
    if (bytes == 0) return;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_.reset(static_cast<std::byte*>(memory));
    madvise(memory, bytes, MADV_HUGEPAGE);  // a wish
  }
  std::byte* data() const { return memory_.get(); }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const { munmap(memory, bytes); }
  };
  std::unique_ptr<std::byte, Unmap> memory_;
};

}  // namespace lockstep::parallel
