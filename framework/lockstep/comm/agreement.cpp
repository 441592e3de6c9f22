#include "lockstep/comm/agreement.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/host/address_space.h"

namespace lockstep::comm {
namespace {

constexpr std::size_t kLongestShown = 160;

// A line of a text; empty: the text ended before.
using Line = std::optional<std::string_view>;

// Returns the first line in which two texts differ, of each text.
std::pair<Line, Line> differing_lines(Line a, Line b) {
  const auto next = [](Line& text) -> Line {
    if (!text) {
      return std::nullopt;
    }
    const std::size_t end = text->find('\n');
    const std::string_view line = text->substr(0, end);
    text = end == std::string_view::npos ? Line() : Line(text->substr(end + 1));
    return line;
  };
  while (true) {
    const Line line_a = next(a), line_b = next(b);
    if (line_a != line_b || !line_a) {
      return {line_a, line_b};
    }
  }
}

// Quotes a line; shows a long one from a few characters before `difference` on.
std::string shown(Line line, std::size_t difference) {
  if (!line) {
    return "no further line";
  }
  if (line->size() <= kLongestShown) {
    return formatted("'{}'", *line);
  }
  const std::size_t begin = difference > kLongestShown / 2 ? difference - kLongestShown / 2 : 0;
  return formatted("'{}{}{}' ({} bytes)", begin > 0 ? "..." : "", line->substr(begin, kLongestShown),
                   begin + kLongestShown < line->size() ? "..." : "", line->size());
}

std::size_t first_difference(Line a, Line b) {
  const std::string_view left = a.value_or(""), right = b.value_or("");
  return static_cast<std::size_t>(std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first -
                                  left.begin());
}

}  // namespace

std::string current_error() {
  try {
    throw;
  } catch (const std::exception& error) {
    return host::explain(error);
  } catch (...) {
    return "an exception of a type that is not std::exception";
  }
}

bool current_error_is_of_peer() {
  try {
    throw;
  } catch (const PeerError&) {
    return true;
  } catch (...) {
    return false;
  }
}

void agree(const Communicator& comm, const std::optional<std::string>& error, bool is_of_peer) {
  const int size = comm.size();  // ranks that only report a peer's failure come after all ranks that failed themselves
  const int chosen = comm.allreduce(error ? comm.rank() + (is_of_peer ? size : 0) : 2 * size, ReduceOp::Min);
  if (chosen == 2 * size) {
    return;
  }
  const int first = chosen % size;
  const int failed = comm.allreduce(error && !is_of_peer ? 1 : 0, ReduceOp::Sum);
  const std::string message = comm.broadcast_string(error.value_or(""), first);
  if (failed == comm.size()) {
    throw AgreedError(message);
  }
  const std::string others = failed > 1 ? formatted(" (and {} of {} ranks failed in all)", failed, comm.size()) : "";
  throw AgreedError(formatted("rank {} on host {}: {}{}", first, comm.topology().host(first), message, others));
}

std::string difference_text(std::string_view name, const NamedValue& expected, const NamedValue& found,
                            std::span<const int> differing, int size) {
  const auto [left, right] = differing_lines(expected.value, found.value);
  const std::size_t difference = first_difference(left, right);
  return formatted(
      "[ranks] {} must be the same on all ranks: rank {} (host {}) has {}, rank {} (host {}) has {}; {} of {} ranks "
      "differ from rank {}: {}",
      name, expected.rank, expected.host, shown(left, difference), found.rank, found.host, shown(right, difference),
      differing.size(), size, expected.rank, joined(differing, ", "));
}

void check_same(const Communicator& comm, std::string_view name, std::string_view value) {
  const std::string reference = comm.broadcast_string(value, 0);
  const std::vector<std::int32_t> differs = comm.allgather(std::int32_t{value != reference ? 1 : 0});
  std::vector<int> ranks;
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (differs[static_cast<std::size_t>(rank)] != 0) ranks.push_back(rank);
  }
  if (ranks.empty()) return;
  const std::string other = comm.broadcast_string(value, ranks.front());
  throw AgreedError(difference_text(name, {0, comm.topology().host(0), reference},
                                    {ranks.front(), comm.topology().host(ranks.front()), other}, ranks, comm.size()));
}

}  // namespace lockstep::comm
