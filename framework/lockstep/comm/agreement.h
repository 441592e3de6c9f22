// Makes all ranks throw when one rank fails; without it, the other ranks would wait for that rank until a user kills
// the job. All functions are collective and throw the same AgreedError on every rank, with rank and host of the
// failure.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/error.h"

namespace lockstep::comm {

// An error that all ranks throw together: one rank may report it for all, and the job can end without MPI_Abort.
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Combines the errors of all ranks. Returns if no rank has one; otherwise all ranks throw an AgreedError with the error
// of the lowest failing rank, and its name unless all failed. An error that only reports the failure of another rank
// (PeerError, `is_of_peer`) counts only if no rank has an error of its own.
void agree(const Communicator& comm, const std::optional<std::string>& error, bool is_of_peer = false);

// Returns the message of the exception that is being handled, and whether it is a PeerError; for use in catch (...).
std::string current_error();
bool current_error_is_of_peer();

// Runs `work` on every rank and returns its result, or throws an AgreedError on all ranks if it throws on any. If
// `work` itself communicates, it must call agree() on the same communicator first: a rank that has failed waits in
// agree().
template <class Work>
std::invoke_result_t<Work&> collectively(const Communicator& comm, Work&& work) {
  std::optional<std::string> error;
  bool is_of_peer = false;
  if constexpr (std::is_void_v<std::invoke_result_t<Work&>>) {
    try {
      work();
    } catch (const AgreedError&) {
      throw;
    } catch (...) {
      error = current_error();
      is_of_peer = current_error_is_of_peer();
    }
    agree(comm, error, is_of_peer);
  } else {
    std::optional<std::invoke_result_t<Work&>> result;
    try {
      result.emplace(work());
    } catch (const AgreedError&) {
      throw;
    } catch (...) {
      error = current_error();
      is_of_peer = current_error_is_of_peer();
    }
    agree(comm, error, is_of_peer);
    return std::move(*result);
  }
}

// The same; null: this process alone, so an Error stays what it is.
template <class Work>
std::invoke_result_t<Work&> collectively(const Communicator* comm, Work&& work) {
  return comm == nullptr ? work() : collectively(*comm, work);
}

// Runs `work` on rank 0, then on all other ranks, and returns its result: to download or unpack files once for all
// ranks. If rank 0 fails, no other rank runs it.
template <class Work>
std::invoke_result_t<Work&> rank_zero_first(const Communicator& comm, Work&& work) {
  if constexpr (std::is_void_v<std::invoke_result_t<Work&>>) {
    rank_zero_first(comm, [&] { return (work(), true); });
  } else {
    using Result = std::invoke_result_t<Work&>;
    std::optional<Result> result =
        collectively(comm, [&] { return comm.is_root() ? std::optional<Result>(work()) : std::nullopt; });
    std::optional<Result> late =
        collectively(comm, [&] { return comm.is_root() ? std::move(result) : std::optional<Result>(work()); });
    return std::move(*late);
  }
}

// Throws unless `value` is the same text on all ranks. The message has `name`, the ranks that differ from rank 0, and
// the value of the first one (if the text has several lines, as a configuration has, the first line that differs).
void check_same(const Communicator& comm, std::string_view name, std::string_view value);

// Returns the message of check_same(); pure: rank 0's value beside that of the first of the ranks in `differing`, of
// `size` ranks.
struct NamedValue {
  int rank = 0;
  std::string_view host, value;
};
std::string difference_text(std::string_view name, const NamedValue& expected, const NamedValue& found,
                            std::span<const int> differing, int size);

}  // namespace lockstep::comm
