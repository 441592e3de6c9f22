#include "lockstep/comm/agreement.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::comm {
namespace {

constexpr std::size_t kLongestShown = 200;

std::string shown(std::string_view text) {
  return text.size() <= kLongestShown ? fmt::format("'{}'", text)
                                      : fmt::format("'{}...' ({} bytes)", text.substr(0, kLongestShown), text.size());
}

// The first line in which two texts differ, of each.
std::pair<std::string_view, std::string_view> differing_lines(std::string_view a, std::string_view b) {
  while (true) {
    const std::size_t end_a = a.find('\n'), end_b = b.find('\n');
    const std::string_view line_a = a.substr(0, end_a), line_b = b.substr(0, end_b);
    if (line_a != line_b || end_a == std::string_view::npos || end_b == std::string_view::npos) {
      return {line_a, line_b};
    }
    a.remove_prefix(end_a + 1);
    b.remove_prefix(end_b + 1);
  }
}

}  // namespace

std::string current_error() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

void agree(const Communicator& comm, const std::optional<std::string>& error) {
  const int first = comm.allreduce(error ? comm.rank() : comm.size(), ReduceOp::Min);
  if (first == comm.size()) {
    return;
  }
  if (comm.size() == 1) {
    throw Error(*error);
  }
  const int failed = comm.allreduce(error ? 1 : 0, ReduceOp::Sum);
  const std::string message = comm.broadcast_string(error.value_or(""), first);
  const std::string others = failed > 1 ? fmt::format(" (and {} of {} ranks failed in all)", failed, comm.size()) : "";
  throw Error(fmt::format("rank {} on host {}: {}{}", first, comm.topology().host(first), message, others));
}

void check_same(const Communicator& comm, std::string_view name, std::string_view value) {
  const std::string reference = comm.broadcast_string(value, 0);
  const std::vector<std::int32_t> differs = comm.allgather(std::int32_t{value != reference ? 1 : 0});
  std::string ranks;
  int count = 0;
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (differs[static_cast<std::size_t>(rank)] != 0) {
      ranks += fmt::format("{}{}", count++ == 0 ? "" : ", ", rank);
    }
  }
  if (count == 0) {
    return;
  }
  const auto first = static_cast<int>(std::find(differs.begin(), differs.end(), 1) - differs.begin());
  const std::string other = comm.broadcast_string(value, first);
  const auto [expected, found] = differing_lines(reference, other);
  fail("ranks",
       "{} must be the same on all ranks: rank 0 (host {}) has {}, rank {} (host {}) has {}; {} of {} ranks differ "
       "from rank 0: {}",
       name, comm.topology().host(0), shown(expected), first, comm.topology().host(first), shown(found), count,
       comm.size(), ranks);
}

}  // namespace lockstep::comm
