#include "bindings/c/failure.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <new>
#include <vector>

#include "lockstep/comm/agreement.h"
#include "lockstep/train/guard/untrusted_error.h"

namespace lockstep::bindings {
namespace {

thread_local std::string message;                   // NOLINT: the thread's last error
thread_local const char* without_memory = nullptr;  // in its place where memory for a message was short

// The site of an error that says that memory is short: allocate_aligned()'s, comm::SharedWindow's. Callers add to the
// text before it.
bool is_of_memory(const std::string& text) {
  return text.find("[memory]") != std::string::npos || text.find("[shared memory]") != std::string::npos;
}

}  // namespace

Failure current_failure(int code) {
  try {
    throw;
  } catch (const CodedError& error) {
    return {error.code(), error.what()};
  } catch (const train::UntrustedError& error) {
    return {LOCKSTEP_ERROR_NOT_FINITE, error.what()};
  } catch (const PeerError& error) {
    return {LOCKSTEP_ERROR_PEER, error.what()};
  } catch (const Error& error) {
    return {is_of_memory(error.what()) ? LOCKSTEP_ERROR_MEMORY : code, error.what()};
  } catch (const std::bad_alloc&) {
    return {LOCKSTEP_ERROR_MEMORY, "[memory] memory is short: the system refused an allocation"};
  } catch (const std::exception& error) {
    return {LOCKSTEP_ERROR_OTHER, error.what()};
  } catch (...) {
    return {LOCKSTEP_ERROR_OTHER, "[c] an exception that is no std::exception"};
  }
}

int record_current_failure(int code) noexcept {
  try {
    Failure failure = current_failure(code);
    message = std::move(failure.text);
    without_memory = nullptr;
    return failure.code;
  } catch (...) {
    without_memory = "[memory] memory is short, also for the message of the error";
    return LOCKSTEP_ERROR_MEMORY;
  }
}

const char* last_message() noexcept { return without_memory != nullptr ? without_memory : message.c_str(); }

void agree(const comm::Communicator& comm, const Failure& mine) {
  const std::vector<std::int32_t> codes = comm.allgather(static_cast<std::int32_t>(mine.code));
  const auto failed = [](std::int32_t code) { return code != LOCKSTEP_OK; };
  const auto first = std::ranges::find_if(codes, failed);
  if (first == codes.end()) return;
  const auto rank = static_cast<int>(first - codes.begin());
  const std::string text = comm.broadcast_string(mine.text, rank);
  const bool all = std::ranges::all_of(codes, failed);
  throw AgreedCodedError(*first, all ? text : formatted("rank {}: {}", rank, text));
}

void require_same(const comm::Communicator& comm, const std::string& name, const std::string& value) {
  try {
    comm::check_same(comm, name, value);
  } catch (const comm::AgreedError& error) {
    throw CodedError(LOCKSTEP_ERROR_ARGUMENT, error.what());
  }
}

}  // namespace lockstep::bindings
