#include "lockstep/comm/communicator_state.h"

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/unusable.h"

namespace lockstep::comm {

OwnedComm::~OwnedComm() {
  if (handle_ != MPI_COMM_NULL && Environment::active()) {
    MPI_Comm_free(&handle_);
  }
}

CommunicatorState::CommunicatorState(MPI_Comm handle, std::shared_ptr<Poison> shared_poison, std::int64_t limit,
                                     std::string host_name)
    : message_limit(limit), poison(std::move(shared_poison)), host(std::move(host_name)), comm_(handle) {
  // Until this line, errors go to the error handler of the caller's communicator.
  verify(MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN), "communicator", "error handler");
  verify(MPI_Comm_rank(handle, &rank), "communicator", "rank query");
  verify(MPI_Comm_size(handle, &size), "communicator", "size query");
}

// After a failure, messages may be under way to a rank that never receives them. MPI reuses the context id of a freed
// communicator for the next one, which would receive those messages as its own and wait for ever (Open MPI 4.1).
// Therefore a poisoned communicator is not freed.
CommunicatorState::~CommunicatorState() {
  if (poison->set.load(std::memory_order_acquire)) comm_.release();
}

void CommunicatorState::begin(std::string_view operation) const {
  check(Environment::active(), operation,
        "MPI is not running: the call came before an Environment or after MPI_Finalize");
  if (poison->set.load(std::memory_order_acquire)) [[unlikely]] {
    const std::scoped_lock lock(poison->mutex);
    fail(operation, "rank {} on host {}: {}", rank, host, unusable("the communicator", poison->reason));
  }
}

void CommunicatorState::set_poison(std::string_view reason) {
  const std::scoped_lock lock(poison->mutex);
  if (!poison->set.load(std::memory_order_relaxed)) {
    poison->reason = reason;
    poison->since = std::chrono::steady_clock::now();
    poison->set.store(true, std::memory_order_release);
  }
}

void CommunicatorState::fail_transfer(std::string_view operation, const std::string& detail) {
  const std::string message = formatted("rank {} of {} on host {}: {}", rank, size, host, detail);
  set_poison(formatted("[{}] {}", operation, message));
  fail_with(operation, message);
}

void CommunicatorState::fail_code(int code, std::string_view operation, const std::string& detail) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) {
    length = 0;
  }
  fail_transfer(operation, formatted("{}: MPI error {}: {}", detail, code,
                                     std::string_view(text, static_cast<std::size_t>(length))));
}

void CommunicatorState::fail_argument(std::string_view operation, const std::string& detail) const {
  fail(operation, "rank {} of {} on host {}: {}", rank, size, host, detail);
}

std::string_view name_of(Element element) {
  constexpr std::string_view names[] = {"bytes", "u8",  "i8",  "u16", "i16", "f16", "bf16",
                                        "u32",   "i32", "f32", "u64", "i64", "f64"};
  return names[static_cast<std::size_t>(element)];
}

MPI_Datatype to_mpi(Element element) {
  switch (element) {
    case Element::Byte:
      return MPI_BYTE;
    case Element::U8:
      return MPI_UINT8_T;
    case Element::I8:
      return MPI_INT8_T;
    case Element::U16:
    case Element::F16:
    case Element::BF16:  // MPI 3.1 has no such type: sends the bits, which an operation of ours reduces
      return MPI_UINT16_T;
    case Element::I16:
      return MPI_INT16_T;
    case Element::U32:
      return MPI_UINT32_T;
    case Element::I32:
      return MPI_INT32_T;
    case Element::F32:
      return MPI_FLOAT;
    case Element::U64:
      return MPI_UINT64_T;
    case Element::I64:
      return MPI_INT64_T;
    case Element::F64:
      return MPI_DOUBLE;
  }
  return MPI_BYTE;
}

}  // namespace lockstep::comm
