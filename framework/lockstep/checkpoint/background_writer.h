// Writes the checkpoints of a run from a thread of its own while training goes on, one at a time, and prunes older
// ones. The thread runs at low priority with all signals blocked, and never enters OpenMP or MPI. A write that
// fails is reported in the log and tried again, from the tensors that are still there, until it succeeds or a newer one
// takes its place; what fails again and again is reported in fewer words, with its count. For one calling thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "lockstep/checkpoint/failure_log.h"
#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/retention.h"
#include "lockstep/io/folder.h"

namespace lockstep::checkpoint {

struct Written {
  std::filesystem::path path;
  double seconds = 0;  // from the request until it was on the disk
};

struct BackgroundWriterOptions {
  std::function<io::Folder()> folder = {};  // asked before each write: where to write now. May throw Error
  Retention keep = {};
  std::chrono::milliseconds retry = std::chrono::seconds(30);  // after a failure
  std::function<void(const Written&)> report = {};             // called by the thread
};

class BackgroundWriter {
 public:
  explicit BackgroundWriter(BackgroundWriterOptions options);
  ~BackgroundWriter();  // waits for a write under way, and tries none again

  // Waits until no tensor of the last draft will be read any more. One that could not be written is given up.
  void claim();
  // Begins to write this draft, whose tensors stay as they are until claim() returns; after claim().
  void write(Draft draft);
  // Waits until the last draft is on the disk. A failure is tried once more now; if that fails too, throws Error.
  void finish();
  double seconds();  // from the request for the last file until it was on the disk; 0: none yet

 private:
  enum class State : std::uint8_t { Idle, Due, Writing, Failed };

  struct Request {
    Draft draft = {};
    std::chrono::steady_clock::time_point asked = {};
  };

  void run();
  std::string attempt() const;
  io::Folder open_folder(const std::string& name) const;
  void prune_older(const io::Folder& folder, std::int64_t step) const;
  bool at_work() const { return state_ == State::Due || state_ == State::Writing; }

  BackgroundWriterOptions options_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  State state_ = State::Idle;
  bool stop_ = false, last_try_ = false;
  Request request_;
  std::chrono::steady_clock::time_point retry_at_;
  std::string failure_;  // of the last try; empty: none
  FailureLog failures_;
  double seconds_ = 0;
  std::thread thread_;
};

}  // namespace lockstep::checkpoint
