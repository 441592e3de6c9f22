#include "lockstep/io/verified_file.h"

#include <algorithm>
#include <utility>

namespace lockstep::io {
namespace {

constexpr std::size_t kHashBlock = std::size_t{4} << 20;  // small enough to be hashed while it is in the cache

}  // namespace

Envelope read_envelope(FileReader& reader) {
  std::vector<std::byte> head(std::min<std::uint64_t>(reader.size(), kEnvelopeBytes));
  reader.read(head);
  return open_envelope(head, reader.size(), reader.path());
}

void verify_payload(FileReader& reader, const Envelope& envelope) {
  std::vector<std::byte> buffer(kHashBlock);
  PayloadHash hash;
  for (std::uint64_t left = reader.size() - kEnvelopeBytes; left > 0;) {
    const auto block = std::span(buffer).first(std::min<std::uint64_t>(left, kHashBlock));
    reader.read(block);
    hash.update(block);
    left -= block.size();
  }
  check_hash(envelope, hash, reader.path());
}

VerifiedFile::VerifiedFile(FileReader& reader, Envelope envelope)
    : path_(reader.path()),
      envelope_((verify_payload(reader, envelope), std::move(envelope))),
      mapping_(reader.descriptor(), reader.size(), path_),
      image_(mapping_.bytes(), path_) {}

TensorSource VerifiedFile::tensors() {
  return {.infos = image_.tensors(),
          .tensor = [this](std::size_t i) -> const NamedTensor& {
            current_ = {};  // frees its memory before the next tensor is read
            current_ = {image_.tensors()[i].name, image_.read(i)};
            return current_;
          },
          .rows = [this](std::size_t i, Range rows) { return image_.read_rows(i, rows); }};
}

void VerifiedFile::verify_tensors() const {
  for (std::size_t i = 0; i < image_.tensors().size(); ++i) image_.read(i);
}

}  // namespace lockstep::io
