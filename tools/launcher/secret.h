// The shared secret of the nodes of a job, and the arithmetic with which a node proves
// that it knows the secret without sending it (HMAC-SHA256 of OpenSSL's libcrypto). Throws Error.
#pragma once

#include <array>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::launcher {

constexpr std::size_t kDigestBytes = 32;
using Digest = std::array<char, kDigestBytes>;

// HMAC-SHA256 of the parts, one after the other. Callers give all parts but the last a fixed length.
Digest hmac(std::string_view key, std::initializer_list<std::string_view> parts);
inline std::string_view view(const Digest& digest) { return {digest.data(), digest.size()}; }
// Takes the same time wherever the two differ.
bool is_equal(std::string_view a, std::string_view b);
std::string random_bytes(std::size_t count);
std::string hexadecimal(std::string_view bytes);
// SHA-256 of a file's content, in hexadecimal.
std::string file_digest(const std::filesystem::path& path);

class Secret {
 public:
  // White space around `text` does not count. Fewer than 16 bytes are an Error that begins with `source`.
  Secret(std::string_view text, std::string_view source);
  ~Secret();
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = delete;

  // The file has to be a regular one of this user, readable for nobody else.
  static Secret from_file(const std::filesystem::path& path);
  // LOCKSTEP_LAUNCH_SECRET, which is removed from the environment: programs have no use for it.
  static std::optional<Secret> from_environment();
  static Secret random();

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace lockstep::launcher
