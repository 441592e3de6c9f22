#include "lockstep/train/run/guard_main.h"

#include <cxxabi.h>
#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <typeinfo>

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/stream_writer.h"
#include "lockstep/host/address_space.h"
#include "lockstep/host/before_libraries.h"
#include "lockstep/train/guard/untrusted_error.h"
#include "lockstep/train/monitor/signals.h"
#include "lockstep/train/options/command_line_error.h"
#include "lockstep/train/prepare/guards.h"

namespace lockstep::train {
namespace {

using std::chrono::milliseconds;

// Delays of ranks before they report: rank 0 reports first, and its abort ends the other ranks; then the lowest rank.
constexpr milliseconds kOthersWait{1000}, kLaterPerRank{100}, kPeersWait{3000};
constexpr int kRanksApart = 20;
constexpr unsigned kMostSecondsToEnd = 20;  // seconds until the process ends, also if a call hangs
constexpr std::size_t kReserve = 1 << 18;   // bytes kept for MPI_Abort when memory is exhausted

std::array<char, 256> program_name{};
std::unique_ptr<char[]> reserve;
std::atomic<bool> ending{false};

// The description of an exception. `text` points into the exception, because no memory may be allocated now.
struct Failure {
  int status = 1;
  const char* type = "";  // the type of an exception that is not ours: what() alone ("map::at") is not enough
  const char* text = "";
  const std::exception* error = nullptr;
  bool is_agreed = false;  // true: all ranks of a communicator threw it, and its text names the rank
  bool is_peers = false;
};

// Returns the type name of the exception that is being handled; the text is static.
const char* current_type() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "unknown type";
  int status = 0;
  const char* readable = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  return status == 0 ? readable : type->name();
}

Failure failure_of(const std::exception_ptr& exception) {
  if (!exception) return {.text = "std::terminate() was called (a std::thread that was not joined?)"};
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return {.status = exit_status_of(error),
            .text = error.what(),
            .error = &error,
            .is_agreed = dynamic_cast<const comm::AgreedError*>(&error) != nullptr,
            .is_peers = dynamic_cast<const PeerError*>(&error) != nullptr};
  } catch (const std::bad_alloc& error) {
    return {.text = "out of memory", .error = &error};
  } catch (const std::system_error& error) {  // for example, a thread could not be started
    return {.text = error.what(), .error = &error};
  } catch (const std::exception& error) {
    return {.type = current_type(), .text = error.what()};
  } catch (const char* text) {
    return {.text = text};
  } catch (...) {
    return {.type = current_type(), .text = "an exception of a type that is not std::exception"};
  }
}

// Returns the full message with unprintable characters escaped; empty if there is no memory for it.
std::string words_of(const Failure& failure) try {
  return printable(failure.error != nullptr ? host::explain(*failure.error) : failure.text);
} catch (const std::bad_alloc&) {
  return {};
}

// Writes one line with one write(), so that lines of ranks and threads do not mix.
void say(const Failure& failure, int rank) {
  std::array<char, HOST_NAME_MAX + 64> where{};
  if (rank >= 0 && !failure.is_agreed) {
    std::array<char, HOST_NAME_MAX + 1> host{};
    if (gethostname(host.data(), host.size() - 1) != 0) host = {"unknown"};
    std::snprintf(where.data(), where.size(), "rank %d on host %s: ", rank, host.data());
  }
  const std::string words = words_of(failure);
  static std::array<char, 1 << 14> line;
  std::snprintf(line.data(), line.size() - 1, "%s: %s%s%s%s", program_name.data(), where.data(), failure.type,
                *failure.type != 0 ? ": " : "", words.empty() ? failure.text : words.c_str());
  const std::size_t length = std::strlen(line.data());
  line[length] = '\n';
  try {
    write_patiently(STDERR_FILENO, {line.data(), length + 1});
  } catch (const std::bad_alloc&) {
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, line.data(), length + 1);  // a failed write cannot be reported
  }
}

milliseconds time_to_wait(const Failure& failure, int rank) {
  const milliseconds for_peers = failure.is_peers ? kPeersWait : milliseconds(0);
  if (rank <= 0) return for_peers;
  return for_peers + kOthersWait + std::min(rank, kRanksApart) * kLaterPerRank;
}

[[noreturn]] void end_job() {
  if (ending.exchange(true)) {  // another thread ends the process; if that fails, the alarm ends it
    for (;;) pause();
  }
  leave_signals();
  reserve.reset();
  const std::exception_ptr exception = std::current_exception();
  const Failure failure = failure_of(exception);
  comm::end_in_time(failure.status, kMostSecondsToEnd);
  const int rank = comm::Environment::world_rank();
  std::this_thread::sleep_for(time_to_wait(failure, rank));
  say(failure, rank);
  comm::abort_job(failure.status);
}

}  // namespace

MainGuard::MainGuard(std::string_view program) {
  host::keep_hangup_ignored();
  if (program.empty()) program = program_invocation_short_name;
  program_name.fill(0);
  program.copy(program_name.data(), program_name.size() - 1);
  reserve = std::make_unique<char[]>(kReserve);
  before_ = std::set_terminate(end_job);
}

MainGuard::~MainGuard() { std::set_terminate(before_); }

int exit_status_of(const std::exception& error) {
  if (dynamic_cast<const UntrustedError*>(&error) != nullptr) return kExitUntrusted;
  if (dynamic_cast<const CommandLineError*>(&error) != nullptr) return kExitCommandLine;
  return 1;
}

}  // namespace lockstep::train
