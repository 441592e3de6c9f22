// Replaces malloc, operator new and oneDNN's entry points for the executable that includes this, in one file of it, and
// counts calls of the thread that asks, beside which loaders may prefetch: for memory, by who asks, and for new
// primitives. Under sanitizers, which own malloc, and outside glibc only operator new is counted (kCountsMalloc). MPI,
// OpenMP and OpenBLAS are C: what they allocate counts as nobody's.
#pragma once

// NOLINTBEGIN: names and definitions are the C library's and the linker's
#include <dlfcn.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace lockstep::counting {

struct Counts {
  std::int64_t news = 0;        // operator new outside oneDNN's primitives
  std::int64_t mallocs = 0;     // malloc and its like there, called by this executable's own code
  std::int64_t inside = 0;      // both, by primitives as they run
  std::int64_t executions = 0;  // of primitives
  std::int64_t creations = 0;
  Counts operator-(const Counts& o) const {
    return {news - o.news, mallocs - o.mallocs, inside - o.inside, executions - o.executions, creations - o.creations};
  }
};

inline thread_local std::int64_t news = 0, mallocs = 0, inside = 0, executions = 0, creations = 0;
inline thread_local int depth = 0;  // of primitives that this thread executes; others may be MPI's

inline Counts counts() { return {news, mallocs, inside, executions, creations}; }

extern "C" const char __executable_start, etext;  // the linker's: where this executable's code begins and ends

inline void count_malloc(const void* caller) {
  if (depth > 0) {
    ++inside;
  } else if (caller >= &__executable_start && caller < &etext) {
    ++mallocs;
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
constexpr bool kCountsMalloc = false;
inline void* uncounted(std::size_t alignment, std::size_t bytes) {
  return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}
#else
constexpr bool kCountsMalloc = true;
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);
inline void* uncounted(std::size_t alignment, std::size_t bytes) { return __libc_memalign(alignment, bytes); }
#endif

inline void* counted_new(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  ++(depth > 0 ? inside : news);
  void* const memory = uncounted(alignment, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace lockstep::counting

void* operator new(std::size_t bytes) { return lockstep::counting::counted_new(bytes); }
void* operator new[](std::size_t bytes) { return lockstep::counting::counted_new(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return lockstep::counting::counted_new(bytes, static_cast<std::size_t>(alignment));
}
// Every form: sanitizers replace those that are not, and then see new and free of different kinds.
// Not inlined, or the compiler warns of that too.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return lockstep::counting::counted_new(bytes); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
void* malloc(std::size_t bytes) {
  lockstep::counting::count_malloc(__builtin_return_address(0));
  return lockstep::counting::__libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) {
  lockstep::counting::count_malloc(__builtin_return_address(0));
  return lockstep::counting::__libc_calloc(n, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  lockstep::counting::count_malloc(__builtin_return_address(0));
  return lockstep::counting::__libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  lockstep::counting::count_malloc(__builtin_return_address(0));
  return lockstep::counting::__libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  lockstep::counting::count_malloc(__builtin_return_address(0));
  return lockstep::counting::__libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  lockstep::counting::count_malloc(__builtin_return_address(0));
  *memory = lockstep::counting::__libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
#endif

// oneDNN's, declared here so that this also compiles without it, when nobody calls them.
int dnnl_primitive_execute(const void* primitive, void* stream, int count, const void* arguments) {
  using namespace lockstep::counting;
  static auto* const real = next<int(const void*, void*, int, const void*)>("dnnl_primitive_execute");
  ++executions;
  ++depth;
  const int status = real(primitive, stream, count, arguments);
  --depth;
  return status;
}
int dnnl_primitive_create(void** primitive, const void* description) {
  using namespace lockstep::counting;
  static auto* const real = next<int(void**, const void*)>("dnnl_primitive_create");
  ++creations;
  return real(primitive, description);
}
}
// NOLINTEND
