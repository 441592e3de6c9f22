#include "lockstep/io/sealed_file.h"

#include <algorithm>
#include <utility>

namespace lockstep::io {
namespace {

constexpr std::size_t kSealBlock = std::size_t{4} << 20;  // small enough to be in the cache for hashing and for writing

}  // namespace

SealedFile::SealedFile(TensorSource tensors, SealedFileOptions options, std::string file)
    : note_(std::move(options.note)),
      image_(std::move(tensors), {.user_block = kEnvelopeBytes, .metadata = std::move(options.metadata)},
             std::move(file)) {
  make_header({.payload = 0, .hash = "", .note = note_});  // throws if the note does not fit
}

std::string SealedFile::write(AtomicFile& out) const {
  out.write(std::vector<std::byte>(kEnvelopeBytes));
  PayloadHash hash;
  image_.write([&](std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto block = bytes.first(std::min(bytes.size(), kSealBlock));
      hash.update(block);
      out.write(block);
      bytes = bytes.subspan(block.size());
    }
  });
  hash.update(std::as_bytes(std::span(note_)));
  std::string digest = hash.digest();
  const std::string header =
      make_header({.payload = static_cast<std::int64_t>(image_.bytes()), .hash = digest, .note = note_});
  out.overwrite(std::as_bytes(std::span(header)));
  return digest;
}

}  // namespace lockstep::io
