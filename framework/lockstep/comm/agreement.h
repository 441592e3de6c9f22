// Ranks that fail together: without these, one rank throws and the others wait for it until someone kills the job. All
// are collective, and throw the same lockstep::Error on every rank, naming the rank and host where it went wrong.
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

// An error that all ranks throw together: one of them may report it for all, and the job can end in good order.
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Each rank gives its error or none. Returns if no rank has one; otherwise all throw an AgreedError with that of the
// lowest failing rank, which is named unless all failed. The error of a rank that only knows of
// another's failure (PeerError) counts if no rank has an error of its own.
void agree(const Communicator& comm, const std::optional<std::string>& error, bool is_of_peer = false);

// The message of the exception that is being handled, and whether it is a PeerError; for use in catch (...).
std::string current_error();
bool current_error_is_of_peer();

// Runs `work` on every rank and agrees on the outcome. What `work` itself communicates begins with agree() on the same
// communicator: a rank that failed before meets it there, and the AgreedError that all then throw passes through.
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

// Rank 0 runs `work` first, then all other ranks run it: to download or unpack files once for all ranks. If rank 0
// fails, no other rank runs it.
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

// Throws unless `value` is the same text on all ranks; names the ranks that differ from rank 0, and of the first of
// them the value (of a text of several lines, such as a whole configuration, the first line that differs).
void check_same(const Communicator& comm, std::string_view name, std::string_view value);

// Its message, pure: rank 0's value beside that of the first of the ranks in `differing`, of `size` ranks.
struct NamedValue {
  int rank = 0;
  std::string_view host, value;
};
std::string difference_text(std::string_view name, const NamedValue& expected, const NamedValue& found,
                            std::span<const int> differing, int size);

}  // namespace lockstep::comm
