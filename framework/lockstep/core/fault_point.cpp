#include "lockstep/core/fault_point.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

struct Fault {
  std::string point, action, once, until;
  std::optional<std::int64_t> rank, at;
  double seconds = 0;
};

std::int64_t number(const std::string& text, const std::string& fault) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc{} && end == text.data() + text.size(), "fault point",
        "LOCKSTEP_FAULT: '{}' in '{}', expected a whole number", text, fault);
  return value;
}

Fault parse(const std::string& text) {
  Fault fault;
  std::istringstream parts(text);
  std::getline(parts, fault.point, ':');
  for (std::string part; std::getline(parts, part, ':');) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals), value = equals == part.npos ? "" : part.substr(equals + 1);
    if (key == "rank") {
      fault.rank = number(value, text);
    } else if (key == "at") {
      fault.at = number(value, text);
    } else if (key == "once") {
      fault.once = value;
    } else if (key == "until") {
      fault.until = value;
    } else if (key == "sleep") {
      fault.action = key;
      fault.seconds = static_cast<double>(number(value, text));
    } else {
      check(key == "kill" || key == "stop" || key == "throw" || key == "corrupt", "fault point",
            "LOCKSTEP_FAULT: '{}' in '{}', expected kill, stop, throw, corrupt, sleep=, rank=, at=, once= or until=",
            part, text);
      fault.action = key;
    }
  }
  check(!fault.action.empty(), "fault point", "LOCKSTEP_FAULT: '{}' has no action", text);
  return fault;
}

std::vector<Fault> read_faults() {
  std::vector<Fault> faults;
  const char* text = std::getenv("LOCKSTEP_FAULT");
  if (text == nullptr) return faults;
  std::istringstream words(text);
  for (std::string word; words >> word;) faults.push_back(parse(word));
  return faults;
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = read_faults();
  return all;
}

std::atomic<int> my_rank{-1};

bool is_over(const Fault& fault) { return !fault.until.empty() && access(fault.until.c_str(), F_OK) == 0; }

bool fires(const Fault& fault, std::string_view point, std::int64_t at) {
  if (fault.point != point || (fault.rank && *fault.rank != my_rank.load()) || (fault.at && *fault.at != at))
    return false;
  if (is_over(fault)) return false;
  if (fault.once.empty()) return true;
  const int file = open(fault.once.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (file >= 0) close(file);
  return file >= 0;
}

void hold(const Fault& fault) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(fault.seconds);
  while (std::chrono::steady_clock::now() < end && !is_over(fault))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

void carry_out(const Fault& fault, std::int64_t at) {
  if (fault.action == "throw") fail("fault point", "{} at {}, as LOCKSTEP_FAULT asks", fault.point, at);
  if (fault.action == "sleep") return hold(fault);
  kill(getpid(), fault.action == "kill" ? SIGKILL : SIGSTOP);
}

}  // namespace

void set_fault_rank(int rank) { my_rank = rank; }

void fault_point(std::string_view point, std::int64_t at) {
  for (const Fault& fault : faults()) {
    if (fault.action != "corrupt" && fires(fault, point, at)) carry_out(fault, at);
  }
}

bool fault_wanted(std::string_view point, std::int64_t at) {
  for (const Fault& fault : faults()) {
    if (fault.action == "corrupt" && fires(fault, point, at)) return true;
  }
  return false;
}

}  // namespace lockstep
