#include "lockstep/checkpoint/run_identity.h"

#include <fmt/format.h>

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <system_error>

#include "lockstep/core/error.h"
#include "lockstep/io/atomic_file.h"

namespace lockstep::checkpoint {
namespace {

constexpr const char* kIdentityName = "run.json";
constexpr const char* kIdentitySite = "output";
constexpr std::size_t kDigits = 16;

}  // namespace

std::string new_run_id() {
  std::uint64_t bits = 0;
  ssize_t n = 0;
  do {
    n = ::getrandom(&bits, sizeof bits, 0);
  } while (n < 0 && errno == EINTR);
  check(n == static_cast<ssize_t>(sizeof bits), kIdentitySite, "getrandom gave no number for the run's id: {}",
        std::generic_category().message(errno));
  return fmt::format("{:016x}", bits);
}

bool is_run_id(std::string_view text) {
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::filesystem::path path_beside(const std::filesystem::path& output, const std::string& run) {
  std::filesystem::path whole = std::filesystem::absolute(output).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  return whole.string() + "." + run;
}

std::optional<std::string> read_run_id(const io::Folder& output) {
  if (!output.has(kIdentityName)) return std::nullopt;
  const io::FileDescriptor file = output.open_file(kIdentityName, io::FileUse::Read, kIdentitySite);
  std::array<char, 1024> text{};
  const ssize_t n = ::pread(file.get(), text.data(), text.size(), 0);
  check(n >= 0, kIdentitySite, "cannot read {}: {}", (output.path() / kIdentityName).string(),
        std::generic_category().message(errno));
  const auto json = nlohmann::json::parse(text.data(), text.data() + n, nullptr, false);
  if (!json.is_object() || !json.contains("run") || !json["run"].is_string()) return std::nullopt;
  const auto& id = json["run"].get_ref<const std::string&>();
  return is_run_id(id) ? std::optional(id) : std::nullopt;
}

void write_run_id(const io::Folder& output, const std::string& id) {
  if (read_run_id(output) == id) return;
  const std::string text = fmt::format("{{\"run\":\"{}\"}}\n", id);
  io::replace_file(output, kIdentityName, text, kIdentitySite);
}

}  // namespace lockstep::checkpoint
