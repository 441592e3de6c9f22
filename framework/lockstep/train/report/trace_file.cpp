#include "lockstep/train/report/trace_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "lockstep/core/log.h"
#include "lockstep/io/folder.h"

namespace lockstep::train {
namespace {

double microseconds(Trace::Clock::time_point time) {
  return std::chrono::duration<double, std::micro>(time.time_since_epoch()).count();
}

// Returns the offset from this rank's clock to rank 0's, from the exchange with the shortest round trip (Cristian
// 1989).
double clock_offset(const comm::Communicator& comm) {
  constexpr int kRounds = 20;
  double offset = 0;
  for (int r = 1; r < comm.size(); ++r) {
    double shortest = std::numeric_limits<double>::max();
    for (int i = 0; i < kRounds; ++i) {
      std::array<double, 1> theirs{};
      if (comm.rank() == 0) {
        comm.recv(theirs, r);
        theirs[0] = microseconds(Trace::Clock::now());
        comm.send(theirs, r);
      } else if (comm.rank() == r) {
        const double begin = microseconds(Trace::Clock::now());
        comm.send(theirs, 0);
        comm.recv(theirs, 0);
        const double end = microseconds(Trace::Clock::now());
        if (end - begin < shortest) {
          shortest = end - begin;
          offset = theirs[0] - (begin + end) / 2;
        }
      }
    }
  }
  return offset;
}

nlohmann::json events_of(const comm::Communicator& comm, Trace& trace) {
  // In the order of Trace::Track.
  constexpr std::array<const char*, 9> kTracks{"steps",         "compute",          "updates",
                                               "wait",          "sums in the node", "network",
                                               "ids of tables", "rows of tables",   "gradients of rows"};
  const double offset = clock_offset(comm);
  nlohmann::json events = nlohmann::json::array();
  const auto name_it = [&](const char* what, std::size_t thread, const std::string& name) {
    events.push_back({{"ph", "M"}, {"pid", comm.rank()}, {"tid", thread}, {"name", what}, {"args", {{"name", name}}}});
  };
  name_it("process_name", 0, fmt::format("rank {} on {}", comm.rank(), comm.host()));
  const std::vector<Trace::Span> spans = trace.take();
  for (std::size_t t = 0; t < kTracks.size(); ++t) {
    const auto track = static_cast<Trace::Track>(t);
    if (std::ranges::find(spans, track, &Trace::Span::track) != spans.end()) name_it("thread_name", t, kTracks[t]);
  }
  for (const Trace::Span& span : spans) {
    events.push_back({{"ph", "X"},
                      {"pid", comm.rank()},
                      {"tid", static_cast<int>(span.track)},
                      {"name", span.name},
                      {"ts", microseconds(span.begin) + offset},
                      {"dur", microseconds(span.end) - microseconds(span.begin)}});
    if (span.step > 0) events.back()["args"]["step"] = span.step;
    if (span.bytes > 0) events.back()["args"]["bytes"] = span.bytes;
  }
  return events;
}

// Writes all bytes; returns 0 or the error number.
int write_all(const io::FileDescriptor& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

io::FileDescriptor open_trace(const std::filesystem::path& path) {
  return io::open_own_file(path, io::FileUse::Replace, "trace", "a --trace FILE in an existing folder");
}

bool write_trace(const comm::Communicator& comm, Trace& trace, io::FileDescriptor file,
                 const std::filesystem::path& path) {
  const std::vector<std::string> parts =
      comm.gather_strings(events_of(comm, trace).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (!comm.is_root()) return true;
  std::string text = "{\"traceEvents\":[";
  for (std::size_t r = 0; r < parts.size(); ++r) {
    text += r > 0 ? ",\n" : "\n";
    text += std::string_view(parts[r]).substr(1, parts[r].size() - 2);  // without brackets
  }
  text += "\n]}\n";
  int code = write_all(file, text);
  if (file.close() != 0 && code == 0) code = errno;
  if (code != 0)
    log()->warn("[trace] {} could not be written: {}; training goes on", path.string(),
                std::generic_category().message(code));
  return code == 0;
}

}  // namespace lockstep::train
