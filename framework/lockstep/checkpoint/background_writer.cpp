#include "lockstep/checkpoint/background_writer.h"

#include <fmt/format.h>

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <utility>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/host/process_memory.h"
#include "lockstep/io/atomic_file.h"

namespace lockstep::checkpoint {
namespace {

using Clock = std::chrono::steady_clock;

// The threads that compute own the cores: this one takes what they leave, and 3% of a core that is never idle (19 would
// be 1.5%, and ResNet-50's file of 205 MB, half a second's work, take half a minute). Signals are theirs too, but for
// one: a file that grows beyond the process's limit is then an error of write(), not the end of the process.
void become_background() {
  constexpr int kNice = 15;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);  // a wish
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

// "1st", "2nd", "3rd", "4th", "11th"
std::string ordinal(std::int64_t n) {
  constexpr std::array<const char*, 4> kEnds{"th", "st", "nd", "rd"};
  const auto last = static_cast<std::size_t>(n % 10);
  const bool regular = n / 10 % 10 == 1 || last >= kEnds.size();
  return fmt::format("{}{}", n, regular ? "th" : kEnds[last]);
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
    check(state_ == State::Idle, "checkpoint", "a draft for step {} while another is written, expected claim() before",
          draft.step);
    draft_ = std::move(draft);
    tries_ = 0;
    asked_ = Clock::now();
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
  check(state_ != State::Failed, "checkpoint", "of the last step, {}, is not written: {}", draft_.step, failure_);
}

double BackgroundWriter::seconds() {
  const std::scoped_lock lock(mutex_);
  return seconds_;
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
      std::string failure = attempt(draft_);
      lock.lock();
      failure_ = std::move(failure);
      state_ = failure_.empty() ? State::Idle : State::Failed;
      retry_at_ = Clock::now() + options_.retry;
      if (state_ == State::Idle) seconds_ = std::chrono::duration<double>(Clock::now() - asked_).count();
      state_ == State::Failed ? report_failure() : report_success();
      changed_.notify_all();
    } else if (stop_) {
      return;
    }
  }
}

// In full the first time. A draft that is tried again is mentioned ever more rarely.
void BackgroundWriter::report_failure() {
  if (++tries_ == 1) ++failed_;
  if (last_try_) return;  // finish() tells
  if (tries_ > 1) {
    if (std::has_single_bit(static_cast<std::uint64_t>(tries_)))
      log()->warn("checkpoint of step {} is not written after {} tries: {}", draft_.step, tries_, failure_);
  } else if (failed_ == 1) {
    log()->warn("checkpoint of step {} is not written: {}; training goes on, and it is tried again after {:.0f} s",
                draft_.step, failure_, std::chrono::duration<double>(options_.retry).count());
  } else {
    log()->warn("checkpoint of step {} is not written: {}; the {} checkpoint in a row that could not be written",
                draft_.step, failure_, ordinal(failed_));
  }
}

void BackgroundWriter::report_success() {
  const std::int64_t failed = std::exchange(failed_, 0) - (tries_ > 0 ? 1 : 0);
  if (failed > 0)
    log()->warn("checkpoint of step {} is written; before it, {}could not be written", draft_.step,
                failed > 1 ? fmt::format("{} in a row ", failed) : "one ");
}

// What went wrong; empty: nothing.
std::string BackgroundWriter::attempt(const Draft& draft) const {
  try {
    const std::string name = name_for(draft.step);
    const SealedFile file = seal(draft, name);
    const Folder folder = open_folder(name);
    AtomicFile out(folder, name, {.bytes = file.bytes(), .step = draft.step});
    file.write(out);
    out.commit();
    const double seconds = std::chrono::duration<double>(Clock::now() - asked_).count();
    if (options_.report) options_.report({.path = folder.path() / name, .seconds = seconds});
    prune_older(folder, draft.step);
  } catch (const std::exception& error) {
    return error.what();
  }
  release_freed_memory();
  return "";
}

Folder BackgroundWriter::open_folder(const std::string& name) const {
  try {
    return options_.folder();
  } catch (const std::exception& error) {
    fail("checkpoint", "{}: no folder to write it in: {}", name, error.what());
  }
}

void BackgroundWriter::prune_older(const Folder& folder, std::int64_t step) const {
  try {
    prune(folder, options_.keep, step);
  } catch (const std::exception& error) {  // the new one is safe: too many files are no reason to stop
    log()->warn("older checkpoints stay: {}", error.what());
  }
}

}  // namespace lockstep::checkpoint
