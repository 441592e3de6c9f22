#include "tools/launcher/secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/io/file_descriptor.h"

namespace lockstep::launcher {
namespace {

constexpr const char* kSecretVariable = "LOCKSTEP_LAUNCH_SECRET";
constexpr std::size_t kFewestBytes = 16, kMostBytes = 4096;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string read_up_to(int file, std::size_t most, const std::filesystem::path& path) {
  std::string text(most, '\0');
  std::size_t used = 0;
  while (used < most) {
    const ssize_t bytes = ::read(file, text.data() + used, most - used);
    check_call(bytes >= 0 || errno == EINTR, "launch", "{} cannot be read", path.string());
    if (bytes == 0) break;
    if (bytes > 0) used += static_cast<std::size_t>(bytes);
  }
  text.resize(used);
  return text;
}

}  // namespace

Digest hmac(std::string_view key, std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  Digest digest{};
  unsigned int length = 0;
  const auto* done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), reinterpret_cast<unsigned char*>(digest.data()), &length);
  check(done != nullptr && length == digest.size(), "launch", "libcrypto's HMAC-SHA256 failed");
  return digest;
}

bool is_equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  check(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1, "launch",
        "libcrypto has no random bytes");
  return bytes;
}

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string file_digest(const std::filesystem::path& path) {
  const io::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  check_call(file.open(), "launch", "{} cannot be read", path.string());
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  check(context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1, "launch", "libcrypto has no SHA-256");
  for (;;) {
    const std::string block = read_up_to(file.get(), 1 << 20, path);
    if (block.empty()) break;
    check(EVP_DigestUpdate(context.get(), block.data(), block.size()) == 1, "launch", "SHA-256 of {} failed",
          path.string());
  }
  Digest digest{};
  check(EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1, "launch",
        "SHA-256 of {} failed", path.string());
  return hexadecimal(view(digest));
}

Secret::Secret(std::string_view text, std::string_view source) : text_(trimmed(text)) {
  check(text_.size() >= kFewestBytes, "launch",
        "{} has {} characters, expected at least {}; `openssl rand -hex 32` prints a good secret", source, text_.size(),
        kFewestBytes);
}

Secret::~Secret() { OPENSSL_cleanse(text_.data(), text_.size()); }

Secret Secret::from_file(const std::filesystem::path& path) {
  const io::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  check_call(file.open(), "launch", "--secret-file {} cannot be read", path.string());
  struct stat found {};
  check_call(::fstat(file.get(), &found) == 0, "launch", "--secret-file {}", path.string());
  check(S_ISREG(found.st_mode), "launch", "--secret-file {} is not a regular file", path.string());
  check(found.st_uid == ::geteuid(), "launch", "--secret-file {} belongs to user {}, expected {}, who starts the job",
        path.string(), found.st_uid, ::geteuid());
  check((found.st_mode & 077) == 0, "launch", "--secret-file {} has mode {}, expected 0600: chmod 600 {}",
        path.string(), fmt::format("{:04o}", found.st_mode & 07777), path.string());
  std::string text = read_up_to(file.get(), kMostBytes + 1, path);
  check(text.size() <= kMostBytes, "launch", "--secret-file {} is longer than {} bytes", path.string(), kMostBytes);
  Secret secret(text, "--secret-file " + path.string());
  OPENSSL_cleanse(text.data(), text.size());
  return secret;
}

std::optional<Secret> Secret::from_environment() {
  char* value = std::getenv(kSecretVariable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  std::optional<Secret> secret(std::in_place, value, kSecretVariable);
  OPENSSL_cleanse(value, std::strlen(value));
  check_call(::unsetenv(kSecretVariable) == 0, "launch", "{} cannot be unset", kSecretVariable);
  return secret;
}

Secret Secret::random() { return {hexadecimal(random_bytes(32)), "a random secret"}; }

}  // namespace lockstep::launcher
