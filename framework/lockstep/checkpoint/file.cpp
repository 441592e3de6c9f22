#include "lockstep/checkpoint/file.h"

#include <utility>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/error.h"
#include "lockstep/io/atomic_file.h"

namespace lockstep::checkpoint {

io::SealedFile seal(const Draft& draft, const std::string& file) {
  return {draft.tensors, {.metadata = draft.metadata, .note = draft.note}, file};
}

void save(const std::filesystem::path& path, const Draft& draft) {
  const io::SealedFile file = seal(draft, path.string());
  const io::Folder folder = io::folder_of(path, "checkpoint");
  io::AtomicFile out(folder, path.filename().string(), {.bytes = file.bytes(), .step = draft.step});
  file.write(out);
  out.commit();
}

void save(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  save(path, Draft{.tensors = io::source_of(checkpoint.tensors), .metadata = checkpoint.metadata});
}

OpenBase base_beside(const std::filesystem::path& path) {
  return [path](const std::string& name) {
    const std::filesystem::path folder = path.parent_path();
    const std::filesystem::path other = folder / ".." / "checkpoints" / name;
    std::error_code error;
    const bool moved = !std::filesystem::exists(folder / name, error) && std::filesystem::exists(other, error);
    return io::FileReader(moved ? other : folder / name);
  };
}

namespace {

std::unique_ptr<io::VerifiedFile> open_base_of(const io::VerifiedFile& file, const Base& base, const OpenBase& open) {
  const std::string name = name_for(base.step);
  try {
    io::FileReader reader = open(name);
    io::Envelope envelope = io::read_envelope(reader);
    check(envelope.hash == base.hash, "checkpoint", "{}: its hash is {}, expected {}", reader.path(), envelope.hash,
          base.hash);
    auto verified = std::make_unique<io::VerifiedFile>(reader, std::move(envelope));
    verified->verify_tensors();
    return verified;
  } catch (const Unavailable&) {
    throw;
  } catch (const Error& error) {
    fail("checkpoint",
         "{}: has the rows that changed since {}, a file that it needs and that cannot be used: {}; put that file "
         "beside it, or take another checkpoint",
         file.path(), name, error.what());
  }
}

}  // namespace

StoredCheckpoint::StoredCheckpoint(io::FileReader& reader, io::Envelope envelope, const OpenBase& open_base)
    : file_(std::make_unique<io::VerifiedFile>(reader, std::move(envelope))) {
  check(file_->image().metadata().has_value(), "checkpoint",
        "{}: the file has weights and no metadata, expected a checkpoint of a run", path());
  file_->verify_tensors();
  const auto base = base_of(note());
  if (!base) return;
  base_ = open_base_of(*file_, *base, open_base);
  merged_ = std::make_unique<MergedTensors>(*file_, *base_);
}

std::optional<StoredCheckpoint> open_checkpoint(io::FileReader& reader, const OpenBase& open_base,
                                                const std::function<bool(const std::string&)>& wanted) {
  io::Envelope envelope = io::read_envelope(reader);
  if (wanted && !wanted(envelope.note)) return std::nullopt;
  return StoredCheckpoint(reader, std::move(envelope), open_base);
}

StoredCheckpoint open_checkpoint(const std::filesystem::path& path) {
  io::FileReader reader(path);
  return *open_checkpoint(reader, base_beside(path), {});
}

Checkpoint StoredCheckpoint::read() {
  Checkpoint checkpoint{.tensors = {}, .metadata = metadata()};
  const io::TensorSource source = tensors();
  for (std::size_t i = 0; i < source.count(); ++i)
    checkpoint.tensors.push_back({source.infos[i].name, source.tensor(i).tensor.clone()});
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
