#include "data/tool/checksum.h"

#include <openssl/evp.h>

#include <array>
#include <memory>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/file_source.h"

namespace lockstep::datasets {
namespace {

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string sha256(data::FileSource& file) {
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> digest(EVP_MD_CTX_new());
  check(digest && EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) == 1, "sha256",
        "OpenSSL cannot begin a digest");
  std::vector<std::uint8_t> buffer(1 << 18);
  while (true) {
    const std::size_t got = file.read_some(buffer);
    if (got == 0) break;
    check(EVP_DigestUpdate(digest.get(), buffer.data(), got) == 1, file.name(), "OpenSSL cannot compute its checksum");
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int count = 0;
  check(EVP_DigestFinal_ex(digest.get(), bytes.data(), &count) == 1, file.name(),
        "OpenSSL cannot compute its checksum");
  std::string text;
  for (unsigned int i = 0; i < count; ++i) text += formatted("{:02x}", bytes[i]);
  return text;
}

}  // namespace

std::string sha256_of_file(const std::filesystem::path& path) {
  data::FileSource file(path, data::FileSource::Form::Plain);
  return sha256(file);
}

std::string sha256_of_content(const std::filesystem::path& path) {
  data::FileSource file(path, data::FileSource::Form::Gzip);
  return sha256(file);
}

}  // namespace lockstep::datasets
