// The main program of every MPI test; harness.h says what it does.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/comm/mpi_interop.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

// Destroyed after main, and so after the Environment: MPI handles may outlive MPI.
std::optional<comm::Communicator> world_of_tests;

seconds limit_per_test() {
  const char* text = std::getenv("LOCKSTEP_TEST_SECONDS");
  const long value = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return seconds(value > 0 ? value : 200);
}

void say(const std::string& line) {
  const std::string whole = fmt::format("[rank {}] {}\n", world_of_tests ? world_of_tests->rank() : -1, line);
  // In one write, so that lines of ranks do not mix.
  std::fwrite(whole.data(), 1, whole.size(), stderr);
  std::fflush(stderr);
}

// Ends the job if a test is not over in time.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void begin(std::string test) { set(std::move(test), limit_per_test()); }
  // This rank failed and waits for the others, who may wait for it in a collective that it left.
  void failed(std::string test) {
    set(std::move(test) + " (failed on this rank, others have not ended it)", seconds(30));
  }
  void end() { set("", seconds(0)); }

 private:
  void set(std::string test, seconds limit) {
    {
      const std::scoped_lock lock(mutex_);
      test_ = std::move(test);
      deadline_ = Clock::now() + limit;
    }
    changed_.notify_all();
  }

  void watch() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      if (test_.empty()) {
        changed_.wait(lock);
      } else if (Clock::now() < deadline_) {
        changed_.wait_until(lock, deadline_);
      } else {
        say(fmt::format("hangs in {}; ending the job", test_));
        comm::abort_job(3);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string test_;
  Clock::time_point deadline_;
  bool over_ = false;
  std::thread thread_;
};

// Runs before GoogleTest's printer at the end of a test, so what it adds is counted and printed.
class CollectiveListener : public testing::EmptyTestEventListener {
 public:
  // Not the communicator that tests use: a message that a failed test left behind must not reach the agreement.
  CollectiveListener() : comm_(comm::Communicator::world()) {}

 private:
  static std::string name_of(const testing::TestInfo& test) {
    return fmt::format("{}.{}", test.test_suite_name(), test.name());
  }

  void OnTestStart(const testing::TestInfo& test) override { watchdog_.begin(name_of(test)); }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed() && !comm_.is_root() && !repeats_others_) {
      say(fmt::format("{}:{}: {}", result.file_name() == nullptr ? "?" : result.file_name(), result.line_number(),
                      result.message()));
    }
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    const bool failed = test.result()->Failed();
    if (failed) {
      watchdog_.failed(name_of(test));
    }
    const auto failures = comm_.allgather(std::int32_t{failed ? 1 : 0});
    watchdog_.end();
    std::string ranks;
    for (std::size_t rank = 0; rank < failures.size(); ++rank) {
      ranks += failures[rank] != 0 ? fmt::format(" {}", rank) : "";
    }
    if (!failed && !ranks.empty()) {
      repeats_others_ = !comm_.is_root();
      ADD_FAILURE() << name_of(test) << " failed on ranks" << ranks;
      repeats_others_ = false;
    }
  }

  comm::Communicator comm_;
  bool repeats_others_ = false;
  Watchdog watchdog_;
};

[[noreturn]] void end_job_on_uncaught() {
  say(std::current_exception() ? "uncaught exception: " + comm::current_error()
                               : std::string("std::terminate was called"));
  comm::abort_job(4);
}

void silence_all_but_root(testing::TestEventListeners& listeners) {
  if (!world().is_root()) {
    delete listeners.Release(listeners.default_result_printer());
    GTEST_FLAG_SET(output, "");  // one report file, rank 0's
  }
}

// LOCKSTEP_TEST_MPI_INIT=single: the program initialises MPI itself, without threads, as some callers do.
class CallersMpi {
 public:
  CallersMpi() {
    const char* wanted = std::getenv("LOCKSTEP_TEST_MPI_INIT");
    ours_ = wanted != nullptr && std::string(wanted) == "single";
    if (ours_) MPI_Init(nullptr, nullptr);
  }
  ~CallersMpi() {
    if (ours_ && std::uncaught_exceptions() == 0) MPI_Finalize();
  }
  CallersMpi(const CallersMpi&) = delete;
  CallersMpi& operator=(const CallersMpi&) = delete;

 private:
  bool ours_ = false;
};

// --source=NAME runs the tests of NAME.cpp alone: many sources make one program, and each is a test of ctest.
void keep_tests_of(const std::string& source) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (std::filesystem::path(test.file()).stem() == source)
        filter += fmt::format("{}.{}:", suite.name(), test.name());
    }
  }
  check(!filter.empty(), "harness", "--source is {}, expected the name of a source of this program, without .cpp",
        source);
  GTEST_FLAG_SET(filter, filter);
}

int run(int argc, char** argv) {
  const CallersMpi callers;
  const comm::Environment environment;
  world_of_tests.emplace(comm::Communicator::world());
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kSource = "--source=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(kSource)) keep_tests_of(argv[1] + kSource.size());
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  silence_all_but_root(listeners);
  listeners.Append(new CollectiveListener);
  const int failed = RUN_ALL_TESTS();
  // The launcher kills the job at the first rank that exits with a failure: what was said must be out by then.
  std::fflush(nullptr);
  return world().allreduce(failed, comm::ReduceOp::Max);
}

}  // namespace

comm::Communicator& world() { return *world_of_tests; }

SharedDirectory::SharedDirectory() {
  path_ = world().broadcast_string(comm::collectively(world(), [] {
    if (!world().is_root()) {
      return std::string();
    }
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
    check(mkdtemp(name.data()) != nullptr, "harness", "cannot make a directory like {}", name);
    return name;
  }));
}

SharedDirectory::~SharedDirectory() {
  // Not while an exception passes through: the other ranks may not be here.
  if (std::uncaught_exceptions() == 0) {
    world().barrier();
  }
  if (world().is_root()) {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
}

}  // namespace lockstep::test

int main(int argc, char** argv) {
  std::set_terminate(lockstep::test::end_job_on_uncaught);
  try {
    return lockstep::test::run(argc, argv);
  } catch (...) {
    lockstep::test::say("ends the job: " + lockstep::comm::current_error());
    lockstep::comm::abort_job(5);
  }
}
