#include "lockstep/preflight/exchange.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"

namespace lockstep::preflight {
namespace {

void write_line(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t bytes = ::write(file, text.data() + done, text.size() - done);
    check_call(bytes >= 0 || errno == EINTR, "doctor", "the doctor that started this process reads no more");
    if (bytes > 0) done += static_cast<std::size_t>(bytes);
  }
}

std::string read_line(int file, std::string& unread) {
  std::array<char, 4096> block{};
  while (true) {
    if (const std::size_t end = unread.find('\n'); end != std::string::npos) {
      std::string text = unread.substr(0, end);
      unread.erase(0, end + 1);
      return text;
    }
    const ssize_t bytes = ::read(file, block.data(), block.size());
    check(bytes > 0 || (bytes < 0 && errno == EINTR), "doctor", "the doctor that started this process has ended");
    if (bytes > 0) unread.append(block.data(), static_cast<std::size_t>(bytes));
  }
}

}  // namespace

std::string LineExchange::read() { return read_line(in_, unread_); }

std::vector<std::string> LineExchange::allgather(const std::string& mine) {
  write_line(out_, nlohmann::json{{"all", mine}}.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
  auto all = nlohmann::json::parse(read()).get<std::vector<std::string>>();
  check(static_cast<int>(all.size()) == size_, "doctor", "{} texts came, expected {}", all.size(), size_);
  return all;
}

}  // namespace lockstep::preflight
