#include "lockstep/comm/shared_window.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "lockstep/comm/abandoned.h"
#include "lockstep/comm/communicator_state.h"
#include "lockstep/core/backoff.h"
#include "lockstep/core/error.h"
#include "lockstep/core/shared_number.h"
#include "lockstep/core/tensor.h"
#include "lockstep/host/process_memory.h"

namespace lockstep::comm {
namespace {

using host::page_bytes;

std::size_t whole_pages(std::size_t bytes) { return (bytes + page_bytes() - 1) / page_bytes() * page_bytes(); }

// Windows are mapped at pages, so a segment has the same offset within a page in every process.
std::byte* page_within(void* base) {
  return reinterpret_cast<std::byte*>(whole_pages(reinterpret_cast<std::uintptr_t>(base)));
}

#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;  // Linux 5.14; older headers do not have it
#endif

// Reserves the memory behind these whole pages. Returns 0, or the reason why the system has no memory for them: another
// process may have filled /dev/shm since its room was measured, and a write would then end this process with SIGBUS. A
// kernel before 5.14 cannot tell; the memory is then as if it was reserved.
int reserve_pages(std::byte* begin, std::size_t bytes) {
  while (madvise(begin, bytes, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINVAL || errno == ENOSYS) return 0;
    if (errno != EAGAIN && errno != EINTR) return errno == EFAULT ? ENOSPC : errno;  // EFAULT: it would be SIGBUS
  }
  return 0;
}

}  // namespace

struct SharedWindow::Handle {
  enum State : int { InUse, Leaving, Failing };
  std::shared_ptr<CommunicatorState> comm;
  std::shared_ptr<std::byte[]> alone = {};  // the memory on a node with one rank, which needs no window
  MPI_Win window = MPI_WIN_NULL;
  int exceptions = std::uncaught_exceptions();
  std::vector<SharedNumber<int>*> states = {};  // by rank, in the page before its segment

  // Freeing is collective. A rank that is failing, or whose memory may still receive a message, sets its state to
  // Failing and does not free. The other ranks then do not wait for it in MPI, and the window stays until the job ends.
  ~Handle() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    if (alone && comm->poison->abandoned) keep_for_ever(std::move(alone));
    if (window == MPI_WIN_NULL || states.empty()) return;
    const bool failing = comm->poison->set || comm->poison->abandoned || std::uncaught_exceptions() > exceptions;
    states[static_cast<std::size_t>(comm->rank)]->store(failing ? Failing : Leaving);
    if (failing) return;
    for (const SharedNumber<int>* state : states) {
      for (Backoff wait; state->load() == InUse;) wait.pause();
      if (state->load() == Failing) return;
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
  }
};

std::size_t free_shared_memory() {
  struct statvfs status {};
  if (statvfs("/dev/shm", &status) != 0) return std::numeric_limits<std::size_t>::max();
  const std::size_t free = static_cast<std::size_t>(status.f_bavail) * static_cast<std::size_t>(status.f_frsize);
  struct rlimit limit {};  // of the size of files: windows are files in /dev/shm
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? std::min<std::size_t>(free, limit.rlim_cur) : free;
}

SharedWindow::SharedWindow(const Communicator& node, std::size_t bytes) {
  if (node.size() == 1) {
    handle_ = std::make_unique<Handle>();
    handle_->comm = node.state_;
    handle_->alone = allocate_aligned(bytes);
    if (bytes > 0) std::memset(handle_->alone.get(), 0, bytes);
    segments_.emplace_back(handle_->alone.get(), bytes);
    return;
  }
  const std::vector<std::int64_t> sizes = node.allgather(static_cast<std::int64_t>(bytes));
  std::size_t total = 0;
  for (std::int64_t size : sizes) total += whole_pages(static_cast<std::size_t>(size)) + 2 * page_bytes();
  const auto room =
      static_cast<std::size_t>(node.allreduce(static_cast<std::uint64_t>(free_shared_memory()), ReduceOp::Min));
  check(total <= room, "shared memory",
        "{} ranks of host {} need {} MiB in /dev/shm, which has {} MiB free: enlarge it (containers: --shm-size; also "
        "check `ulimit -f`), or use --allreduce messages",
        node.size(), node.host(), (total >> 20) + 1, room >> 20);
  handle_ = std::make_unique<Handle>();
  handle_->comm = node.state_;
  void* base = nullptr;
  std::vector<SharedNumber<int>*> states;
  CommunicatorState& state = *handle_->comm;
  state.begin("shared window");
  state.verify(MPI_Win_allocate_shared(static_cast<MPI_Aint>(whole_pages(bytes) + 2 * page_bytes()), 1, MPI_INFO_NULL,
                                       state.handle(), static_cast<void*>(&base), &handle_->window),
               "shared window", "{} bytes", bytes);
  state.verify(MPI_Win_lock_all(MPI_MODE_NOCHECK, handle_->window), "shared window", "locking");
  for (int r = 0; r < node.size(); ++r) {
    MPI_Aint size = 0;
    int unit = 0;
    state.verify(MPI_Win_shared_query(handle_->window, r, &size, &unit, static_cast<void*>(&base)), "shared window",
                 "segment of rank {}", r);
    std::byte* page = page_within(base);
    segments_.emplace_back(page + page_bytes(), static_cast<std::size_t>(sizes[static_cast<std::size_t>(r)]));
    states.push_back(reinterpret_cast<SharedNumber<int>*>(page));
  }
  std::byte* const mine = segment(node.rank()).data();
  const int lack = node.allreduce(reserve_pages(mine - page_bytes(), whole_pages(bytes) + page_bytes()), ReduceOp::Max);
  if (lack != 0) {  // on all ranks alike
    MPI_Win_unlock_all(handle_->window);
    MPI_Win_free(&handle_->window);
    fail("shared memory",
         "{} ranks of host {} need {} MiB in /dev/shm, which could not be reserved: {}. Another process may have taken "
         "the room; enlarge it (containers: --shm-size), or use --allreduce messages",
         node.size(), node.host(), (total >> 20) + 1, std::strerror(lack));
  }
  states[static_cast<std::size_t>(node.rank())]->store(Handle::InUse);
  // Each rank touches its segment now: its pages are then near this rank, and a lack of memory shows at the start.
  std::memset(mine, 0, bytes);
  node.barrier();
  handle_->states = std::move(states);
}

SharedWindow::~SharedWindow() = default;
SharedWindow::SharedWindow(SharedWindow&&) noexcept = default;
SharedWindow& SharedWindow::operator=(SharedWindow&&) noexcept = default;

}  // namespace lockstep::comm
