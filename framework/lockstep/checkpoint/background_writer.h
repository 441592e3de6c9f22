// Writes the checkpoints of a run, one at a time, while training goes on, and prunes older ones. The writer has its own
// thread, which runs at low priority with all signals blocked and never enters OpenMP or MPI. If a write fails, the
// writer logs the failure and tries again from the same tensors, until the write succeeds or a newer checkpoint
// replaces it. Repeated failures are logged in fewer words, with their count. One thread at a time calls the functions.
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
  std::int64_t step = -1;  // of the file
  std::string hash = {};   // of its contents
  double seconds = 0;      // from the request until the file was on the disk
};

struct BackgroundWriterOptions {
  std::function<io::Folder()> folder = {};  // called before each write: returns the folder to write to. May throw Error
  Retention keep = {};
  std::chrono::milliseconds retry = std::chrono::seconds(30);  // time between a failure and the next try
  std::function<void(const Written&)> report = {};             // called by the writer's thread after each success
};

class BackgroundWriter {
 public:
  explicit BackgroundWriter(BackgroundWriterOptions options);
  ~BackgroundWriter();  // waits for a write under way; does not retry a failed one

  // Waits until the writer no longer reads tensors of the last draft. Gives up a draft that could not be written.
  void claim();
  // Starts to write `draft`. Call claim() before; the draft's tensors must not change until the next claim() returns.
  void write(Draft draft);
  // Waits until the last draft is on the disk. Retries a failed write once and throws Error if that fails too.
  void finish();
  Written written();  // the last file that is on the disk; its step is -1 if there is none

 private:
  enum class State : std::uint8_t { Idle, Due, Writing, Failed };

  struct Request {
    Draft draft = {};
    std::chrono::steady_clock::time_point asked = {};
  };

  void run();
  std::string attempt(Written& written) const;
  io::Folder open_folder(const std::string& name) const;
  void prune_older(const io::Folder& folder, std::int64_t step) const;
  bool at_work() const { return state_ == State::Due || state_ == State::Writing; }

  BackgroundWriterOptions options_;
  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  State state_ = State::Idle;
  bool stop_ = false, last_try_ = false;
  Request request_;
  std::chrono::steady_clock::time_point retry_at_;
  std::string failure_;  // message of the last try; empty: it did not fail
  FailureLog failures_;
  Written written_;
  std::thread thread_;
};

}  // namespace lockstep::checkpoint
