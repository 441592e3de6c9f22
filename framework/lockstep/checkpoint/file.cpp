#include "lockstep/checkpoint/file.h"

#include <algorithm>

#include "lockstep/io/atomic_file.h"
#include "lockstep/io/envelope.h"
#include "lockstep/io/image.h"
#include "lockstep/io/read_file.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::size_t kBlock = std::size_t{4} << 20;  // hashed while it is still in the cache

struct Head {
  std::vector<std::byte> bytes;
  Envelope envelope;
};

Head read_head(FileReader& reader) {
  Head head{.bytes = std::vector<std::byte>(std::min<std::uint64_t>(reader.size(), kEnvelopeBytes)), .envelope = {}};
  reader.read(head.bytes);
  head.envelope = open_envelope(head.bytes, reader.size(), reader.path());
  return head;
}

// The whole file, whose head is read already; its hash holds.
std::vector<std::byte> read_payload(FileReader& reader, const Head& head) {
  std::vector<std::byte> bytes = allocate_for(reader.size(), reader.path());
  std::ranges::copy(head.bytes, bytes.begin());
  PayloadHash hash;
  for (std::span<std::byte> rest = std::span(bytes).subspan(kEnvelopeBytes); !rest.empty();) {
    const auto block = rest.first(std::min(rest.size(), kBlock));
    reader.read(block);
    hash.update(block);
    rest = rest.subspan(block.size());
  }
  check_hash(head.envelope, hash, reader.path());
  return bytes;
}

Checkpoint parse_trusted(std::span<const std::byte> bytes, const std::string& place) {
  Image image = read_image(bytes, place);
  check(image.metadata.has_value(), "checkpoint", "{}: weights without metadata, expected a whole checkpoint", place);
  return {.tensors = std::move(image.tensors), .metadata = std::move(*image.metadata)};
}

}  // namespace

SealedFile seal(const Draft& draft, const std::string& place) {
  return {draft.tensors, {.metadata = draft.metadata, .note = draft.note}, place};
}

Checkpoint parse(std::span<const std::byte> bytes, const std::string& place) {
  verify_bytes(bytes, place);
  return parse_trusted(bytes, place);
}

void save(const std::filesystem::path& path, const Draft& draft) {
  const SealedFile file = seal(draft, path.string());
  const Folder folder = folder_of(path);
  AtomicFile out(folder, path.filename().string(), {.bytes = file.bytes(), .step = draft.step});
  file.write(out);
  out.commit();
}

void save(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  save(path, Draft{.tensors = source_of(checkpoint.tensors), .metadata = checkpoint.metadata});
}

std::optional<LoadedFile> read_checkpoint(FileReader& reader, const std::function<bool(const std::string&)>& wanted) {
  Head head = read_head(reader);
  if (wanted && !wanted(head.envelope.note)) return std::nullopt;
  LoadedFile file{.contents = {}, .note = head.envelope.note, .bytes = read_payload(reader, head)};
  file.contents = parse_trusted(file.bytes, reader.path());
  return file;
}

LoadedFile read_checkpoint(const std::filesystem::path& path) {
  FileReader reader(path);
  return *read_checkpoint(reader, {});
}

Checkpoint load(const std::filesystem::path& path) { return read_checkpoint(path).contents; }

void verify(const std::filesystem::path& path) {
  FileReader reader(path);
  verify(reader);
}

void verify(FileReader& reader) {
  const Head head = read_head(reader);
  std::vector<std::byte> buffer(kBlock);
  PayloadHash hash;
  for (std::uint64_t left = reader.size() - kEnvelopeBytes; left > 0;) {
    const auto block = std::span(buffer).first(std::min<std::uint64_t>(left, kBlock));
    reader.read(block);
    hash.update(block);
    left -= block.size();
  }
  check_hash(head.envelope, hash, reader.path());
}

std::string read_note(const std::filesystem::path& path) {
  FileReader reader(path);
  return read_note(reader);
}

std::string read_note(FileReader& reader) { return read_head(reader).envelope.note; }

}  // namespace lockstep::checkpoint
