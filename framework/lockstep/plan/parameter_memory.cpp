#include "lockstep/plan/parameter_memory.h"

#include <sys/mman.h>

#include "lockstep/core/error.h"
#include "lockstep/host/process_memory.h"

namespace lockstep::plan {
LazyPages::LazyPages(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(memory != MAP_FAILED, "memory", "no address space for {} MiB", bytes >> 20);
  madvise(memory, bytes,
          MADV_NOHUGEPAGE);  // a huge page would take memory for neighbouring pages that are never written
  data_ = static_cast<std::byte*>(memory);
}

LazyPages::~LazyPages() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void LazyPages::drop(std::size_t begin, std::size_t end) {
  const std::size_t page = host::page_bytes();
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end) madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace lockstep::plan
