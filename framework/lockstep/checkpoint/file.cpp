#include "lockstep/checkpoint/file.h"

#include <utility>

#include "lockstep/io/atomic_file.h"

namespace lockstep::checkpoint {

io::SealedFile seal(const Draft& draft, const std::string& file) {
  return {draft.tensors, {.metadata = draft.metadata, .note = draft.note}, file};
}

void save(const std::filesystem::path& path, const Draft& draft) {
  const io::SealedFile file = seal(draft, path.string());
  const io::Folder folder = io::folder_of(path);
  io::AtomicFile out(folder, path.filename().string(), {.bytes = file.bytes(), .step = draft.step});
  file.write(out);
  out.commit();
}

void save(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  save(path, Draft{.tensors = io::source_of(checkpoint.tensors), .metadata = checkpoint.metadata});
}

StoredCheckpoint::StoredCheckpoint(io::FileReader& reader, io::Envelope envelope)
    : file_(std::make_unique<io::VerifiedFile>(reader, std::move(envelope))) {
  check(file_->image().metadata().has_value(), "checkpoint",
        "{}: the file has weights and no metadata, expected a checkpoint of a run", path());
  file_->verify_tensors();
}

std::optional<StoredCheckpoint> open_checkpoint(io::FileReader& reader,
                                                const std::function<bool(const std::string&)>& wanted) {
  io::Envelope envelope = io::read_envelope(reader);
  if (wanted && !wanted(envelope.note)) return std::nullopt;
  return StoredCheckpoint(reader, std::move(envelope));
}

StoredCheckpoint open_checkpoint(const std::filesystem::path& path) {
  io::FileReader reader(path);
  return *open_checkpoint(reader, {});
}

Checkpoint StoredCheckpoint::read() const {
  const io::ImageReader& image = file_->image();
  Checkpoint checkpoint{.tensors = {}, .metadata = metadata()};
  for (std::size_t i = 0; i < image.tensors().size(); ++i)
    checkpoint.tensors.push_back({image.tensors()[i].name, image.read(i)});
  return checkpoint;
}

Checkpoint load(const std::filesystem::path& path) { return open_checkpoint(path).read(); }

void verify(const std::filesystem::path& path) {
  io::FileReader reader(path);
  verify(reader);
}

void verify(io::FileReader& reader) { io::verify_payload(reader, io::read_envelope(reader)); }

std::string read_note(const std::filesystem::path& path) {
  io::FileReader reader(path);
  return read_note(reader);
}

std::string read_note(io::FileReader& reader) { return io::read_envelope(reader).note; }

}  // namespace lockstep::checkpoint
