#include "lockstep/comm/environment.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <thread>

#include "lockstep/comm/c_mpi.h"
#include "lockstep/comm/launch.h"
#include "lockstep/core/error.h"

namespace lockstep::comm {
namespace {

int to_mpi(ThreadLevel level) {
  constexpr int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  return levels[static_cast<int>(level)];
}

// The MPI standard orders the constants and does not fix their values.
ThreadLevel from_mpi(int provided) {
  if (provided >= MPI_THREAD_MULTIPLE) {
    return ThreadLevel::Multiple;
  }
  if (provided >= MPI_THREAD_SERIALIZED) {
    return ThreadLevel::Serialized;
  }
  return provided >= MPI_THREAD_FUNNELED ? ThreadLevel::Funneled : ThreadLevel::Single;
}

std::optional<std::string> read_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Waits until all ranks are here. The mpirun of Open MPI 4.1 may crash, or wait for itself for ever, if a rank ends the
// job while another rank is in MPI_Finalize, but not while it is in another collective operation. A job of several
// programs may have ranks without an Environment, which would never come.
void wait_for_all_ranks() {
  if (read_variable("OMPI_NUM_APP_CTX") != "1") return;
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return;
  int done = 0;
  for (std::chrono::microseconds pause(1); MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0;) {
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(1000));
  }
}

}  // namespace

const char* name_of(ThreadLevel level) {
  constexpr const char* names[] = {"single", "funneled", "serialized", "multiple"};
  return names[static_cast<int>(level)];
}

Environment::Environment(ThreadLevel wanted) : exceptions_at_start_(std::uncaught_exceptions()) {
  start(wanted);
  try {
    refuse_scattered_singletons();
  } catch (...) {
    // The world has one rank, so MPI_Finalize waits for no other rank.
    if (initialised_here_) {
      MPI_Finalize();
    }
    throw;
  }
}

void Environment::start(ThreadLevel wanted) {
  int finalised = 0;
  MPI_Finalized(&finalised);
  check(finalised == 0, "mpi", "MPI is finalised already; a process can initialise it only once");
  int initialised = 0;
  MPI_Initialized(&initialised);
  int provided = MPI_THREAD_SINGLE;
  if (initialised != 0) {
    MPI_Query_thread(&provided);
  } else {
    const int code = MPI_Init_thread(nullptr, nullptr, to_mpi(wanted), &provided);
    check(code == MPI_SUCCESS, "mpi", "MPI_Init_thread failed with code {}", code);
    initialised_here_ = true;
  }
  thread_level_ = from_mpi(provided);
}

ThreadLevel Environment::current_thread_level() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  return from_mpi(provided);
}

void Environment::refuse_scattered_singletons() {
  int size = 1;
  const int code = MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(code == MPI_SUCCESS, "mpi", "MPI_Comm_size failed with code {}", code);
  if (const auto problem = launch_problem({.world_size = size, .library = library(), .variable = read_variable})) {
    fail_with("launch", *problem);
  }
}

Environment::~Environment() {
  if (initialised_here_ && active() && std::uncaught_exceptions() == exceptions_at_start_) {
    wait_for_all_ranks();
    MPI_Finalize();
  }
}

bool Environment::active() {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return initialised != 0 && finalised == 0;
}

int Environment::world_rank() {
  int rank = -1;
  if (!active() || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) return launched_rank();
  return rank;
}

std::string Environment::library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text);  // without `length`: Open MPI's includes the terminating zero
  return version.substr(0, version.find('\n'));
}

namespace {

constexpr unsigned kLastSeconds = 5;  // time for flushing stdio and for MPI_Abort
// For launchers to pass on what this process has written: MPICH's loses the rest when it hears of MPI_Abort.
constexpr std::chrono::milliseconds kPassingOn(200);
volatile std::sig_atomic_t last_code = 1;

}  // namespace

void end_in_time(int code, unsigned seconds) {
  last_code = code;
  std::signal(SIGALRM, [](int) { _exit(last_code); });
  sigset_t alarm_alone;
  sigemptyset(&alarm_alone);
  sigaddset(&alarm_alone, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarm_alone, nullptr);
  alarm(seconds);
}

void abort_job(int code) {
  end_in_time(code, kLastSeconds);
  std::fflush(stdout);
  std::fflush(stderr);
  if (Environment::active()) {
    std::this_thread::sleep_for(kPassingOn);
    MPI_Abort(MPI_COMM_WORLD, code);
  }
  std::_Exit(code);
}

}  // namespace lockstep::comm
