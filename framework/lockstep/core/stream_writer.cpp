#include "lockstep/core/stream_writer.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

#include "lockstep/core/prompt_writer.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPiece = 4096;  // bytes in one write(): a pipe that has room at all takes as many

// With all signals blocked: handlers run in the caller's threads, and a closed pipe is an error of write() alone.
bool start(std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
  bool started = true;
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error&) {  // no memory or no more threads
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

struct StreamWriter::State {
  int file;
  StreamWriterOptions options;
  mutable std::mutex mutex;
  std::condition_variable wake, progress;
  std::deque<std::string> queue;  // the front is being written
  std::size_t bytes = 0;          // in the queue
  struct {
    std::uint64_t accepted = 0, done = 0;
  } pieces;
  Clock::time_point moved = Clock::now();
  bool running = false, ended = false, behind = false;

  bool has_room() const { return queue.empty() || bytes < options.room; }
  void run();
  void write_here(Clock::time_point limit);
  bool write_some(std::string_view& text) const;
};

// A part of the text, however long that takes; false if the stream is gone.
bool StreamWriter::State::write_some(std::string_view& text) const {
  const ssize_t written = ::write(file, text.data(), std::min(text.size(), kPiece));
  if (written >= 0) {
    text.remove_prefix(static_cast<std::size_t>(written));
    return true;
  }
  if (errno == EAGAIN) {  // another process made the stream non-blocking
    pollfd ready{file, POLLOUT, 0};
    poll(&ready, 1, 1000);
    return true;
  }
  return errno == EINTR;
}

void StreamWriter::State::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return ended || !queue.empty(); });
    if (queue.empty()) return;
    const std::string text = queue.front();
    std::string_view rest = text;
    bool there = true;
    while (there && !rest.empty()) {
      lock.unlock();
      there = write_some(rest);
      lock.lock();
      moved = Clock::now();
    }
    bytes -= text.size();
    queue.pop_front();
    ++pieces.done;
    behind = behind && !queue.empty();
    progress.notify_all();
  }
}

// In the caller's thread, since no other could be started: the queue, as far as the stream takes it until `limit`.
void StreamWriter::State::write_here(Clock::time_point limit) {
  const PromptWriter writer(file);
  while (!queue.empty()) {
    std::string_view rest = queue.front();
    const bool there = writer.write(rest);
    const std::size_t taken = there ? queue.front().size() - rest.size() : queue.front().size();
    if (taken == 0) {
      if (Clock::now() >= limit) return;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - Clock::now());
      pollfd ready{file, POLLOUT, 0};
      poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 1, 20)));
      continue;
    }
    moved = Clock::now();
    bytes -= taken;
    queue.front().erase(0, taken);
    if (!queue.front().empty()) continue;
    queue.pop_front();
    ++pieces.done;
  }
  behind = false;
}

StreamWriter::StreamWriter(int file, const StreamWriterOptions& options) : state_(std::make_shared<State>()) {
  state_->file = file;
  state_->options = options;
}

StreamWriter::~StreamWriter() {
  const bool stuck = [&] {
    const std::lock_guard lock(state_->mutex);
    return state_->behind;
  }();
  if (!stuck) flush(state_->options.patience);
  const std::lock_guard lock(state_->mutex);
  state_->ended = true;
  state_->wake.notify_all();
}

StreamWriter::Result StreamWriter::write(std::string_view text) {
  State& s = *state_;
  if (text.empty()) return Result::Written;
  std::unique_lock lock(s.mutex);
  if (!s.running) s.running = start([state = state_] { state->run(); });
  if (!s.running) s.write_here(Clock::now());
  if (!s.has_room()) return Result::Dropped;
  if (s.queue.empty()) s.moved = Clock::now();
  s.queue.emplace_back(text);
  s.bytes += text.size();
  const std::uint64_t mine = ++s.pieces.accepted;
  if (!s.running) {
    s.write_here(s.behind ? Clock::now() : Clock::now() + s.options.patience);
    s.behind = !s.queue.empty();
    return s.behind ? Result::Queued : Result::Written;
  }
  s.wake.notify_one();
  if (!s.behind && s.progress.wait_for(lock, s.options.patience, [&] { return s.pieces.done >= mine; }))
    return Result::Written;
  s.behind = true;
  return Result::Queued;
}

bool StreamWriter::flush(std::chrono::milliseconds limit) {
  std::unique_lock lock(state_->mutex);
  if (!state_->running) {
    state_->write_here(Clock::now() + limit);
    return state_->queue.empty();
  }
  return state_->progress.wait_for(lock, limit, [this] { return state_->queue.empty(); });
}

bool StreamWriter::has_room() const {
  const std::lock_guard lock(state_->mutex);
  return state_->has_room();
}

std::size_t StreamWriter::pieces_waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->queue.size();
}

std::string StreamWriter::text_waiting() const {
  const std::lock_guard lock(state_->mutex);
  std::string text;
  for (const std::string& piece : state_->queue) text += piece;
  return text;
}

std::chrono::milliseconds StreamWriter::stuck_for() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->queue.empty()) return std::chrono::milliseconds(0);
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - state_->moved);
}

void write_patiently(int file, std::string_view text) { StreamWriter(file).write(text); }

}  // namespace lockstep
