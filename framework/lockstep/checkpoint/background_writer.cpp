#include "lockstep/checkpoint/background_writer.h"

#include <omp.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/host/process_memory.h"
#include "lockstep/io/atomic_file.h"

namespace lockstep::checkpoint {
namespace {

using Clock = std::chrono::steady_clock;

// The compute threads own the cores. This thread uses idle time, and 3% of a core that is never idle (niceness 19 would
// give 1.5%, and ResNet-50's file of 205 MB, half a second of work, would take half a minute). Other threads handle the
// signals; with SIGXFSZ blocked, write() returns an error when a file exceeds the process's size limit.
void become_background() {
  constexpr int kNice = 15;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);  // best effort
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  omp_set_num_threads(1);  // of this thread's own loops: a team of its own would take the compute threads' cores
}

}  // namespace

BackgroundWriter::BackgroundWriter(BackgroundWriterOptions options)
    : options_(std::move(options)), thread_([this] { run(); }) {}

BackgroundWriter::~BackgroundWriter() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundWriter::claim() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !at_work(); });
  state_ = State::Idle;
}

void BackgroundWriter::write(Draft draft) {
  {
    const std::scoped_lock lock(mutex_);
    check(state_ == State::Idle, "checkpoint",
          "write() of step {} while another draft is written, expected claim() first", draft.step);
    request_ = {std::move(draft), Clock::now()};
    failures_.begin();
    state_ = State::Due;
  }
  changed_.notify_all();
}

void BackgroundWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !at_work(); });
  if (state_ != State::Failed) return;
  last_try_ = true;
  state_ = State::Due;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !at_work(); });
  last_try_ = false;
  check(state_ != State::Failed, "checkpoint", "the final checkpoint (step {}) could not be written: {}",
        request_.draft.step, failure_);
}

Written BackgroundWriter::written() {
  const std::scoped_lock lock(mutex_);
  return written_;
}

void BackgroundWriter::run() {
  become_background();
  std::unique_lock lock(mutex_);
  const auto wanted = [&] { return stop_ || state_ == State::Due; };
  for (;;) {
    if (state_ == State::Failed) {
      const bool woken = changed_.wait_until(lock, retry_at_, [&] { return wanted() || state_ == State::Idle; });
      if (!woken) state_ = State::Due;
    } else {
      changed_.wait(lock, wanted);
    }
    if (state_ == State::Due) {
      state_ = State::Writing;
      lock.unlock();
      Written written;
      std::string failure = attempt(written);
      lock.lock();
      failure_ = std::move(failure);
      state_ = failure_.empty() ? State::Idle : State::Failed;
      retry_at_ = Clock::now() + options_.retry;
      if (state_ == State::Idle) written_ = std::move(written);
      const std::int64_t step = request_.draft.step;
      state_ == State::Failed ? failures_.failed(step, failure_, options_.retry, last_try_) : failures_.succeeded(step);
      changed_.notify_all();
    } else if (stop_) {
      return;
    }
  }
}

// Tries to write the draft once. Returns the error message; empty: success, and `written` is set.
std::string BackgroundWriter::attempt(Written& written) const {
  const Draft& draft = request_.draft;
  try {
    const std::string name = name_for(draft.step);
    const io::SealedFile file = seal(draft, name);
    const io::Folder folder = open_folder(name);
    io::AtomicFile out(folder, name, {.bytes = file.bytes(), .step = draft.step});
    const std::string hash = file.write(out);
    out.commit();
    written = {.path = folder.path() / name,
               .step = draft.step,
               .hash = hash,
               .seconds = std::chrono::duration<double>(Clock::now() - request_.asked).count()};
    if (options_.report) options_.report(written);
    prune_older(folder, draft.step);
  } catch (const std::exception& error) {
    return error.what();
  }
  host::release_freed_memory();
  return "";
}

io::Folder BackgroundWriter::open_folder(const std::string& name) const {
  try {
    return options_.folder();
  } catch (const std::exception& error) {
    fail("checkpoint", "{}: the checkpoint folder cannot be opened: {}", name, error.what());
  }
}

void BackgroundWriter::prune_older(const io::Folder& folder, std::int64_t step) const {
  try {
    prune(folder, options_.keep, step);
  } catch (const std::exception& error) {  // the new checkpoint is safe, so training goes on with too many files
    log()->warn("older checkpoints could not be pruned: {}", error.what());
  }
}

}  // namespace lockstep::checkpoint
