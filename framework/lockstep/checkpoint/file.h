// A checkpoint on disk: an HDF5 file that h5py opens directly, with a hash of its contents in the user block that is
// checked before HDF5 sees a byte. Tensors are written and read one at a time. Failures are Errors that name the file
// and what was expected; functions may be called from any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"
#include "lockstep/io/sealed_file.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/io/verified_file.h"

namespace lockstep::checkpoint {

struct Checkpoint {
  std::vector<io::NamedTensor> tensors;  // load() gives them sorted by name
  std::string metadata;                  // JSON text, kept as it is; "metadata" is therefore no tensor's name
};

// A checkpoint to be written, whose tensors are made when they are asked for.
struct Draft {
  io::TensorSource tensors;
  std::string metadata;
  std::string note = {};  // one line of at most kMaxNote bytes, which read_note() finds without the rest
  std::int64_t step = 0;  // what fault points count it as
};

// A checkpoint that is laid out and waits to be written; refers to the draft's tensors, and asks for each of them once
// now and once in write(). `place` is for messages.
io::SealedFile seal(const Draft& draft, const std::string& place);

// Writes the file so that at every instant `path` is the old one or the new one, on the disk when this returns. Takes
// memory for one tensor at a time, beside what the draft's source holds. The same contents give the same bytes. On
// failure the old file stays and nothing else is left behind.
void save(const std::filesystem::path& path, const Checkpoint& checkpoint);
void save(const std::filesystem::path& path, const Draft& draft);

// A checkpoint that is open to be read: file hash and every tensor's checksum hold. One thread at a time.
class StoredCheckpoint {
 public:
  // The rest of a file of which read_envelope() gave the envelope: read from one end to the other, once, and hashed as
  // it comes; then each tensor is looked at.
  StoredCheckpoint(io::FileReader& reader, io::Envelope envelope);

  const std::string& path() const { return file_->path(); }
  const std::string& note() const { return file_->envelope().note; }
  const std::string& metadata() const { return *file_->image().metadata(); }
  // Sorted by name, each in memory from when it is asked for until the next; refers to this.
  io::TensorSource tensors() { return file_->tensors(); }
  Checkpoint read() const;  // all of it

 private:
  std::unique_ptr<io::VerifiedFile> file_;
};

// `wanted` is asked with the note before anything else is read; empty: it said no.
std::optional<StoredCheckpoint> open_checkpoint(io::FileReader& reader,
                                                const std::function<bool(const std::string&)>& wanted);
StoredCheckpoint open_checkpoint(const std::filesystem::path& path);

// All of it in memory.
Checkpoint load(const std::filesystem::path& path);

// Magic, version, length and hash hold; in constant memory. load() looks at each tensor's checksum beside.
void verify(const std::filesystem::path& path);
void verify(io::FileReader& reader);

// The note in the file's header, of which nothing else is read or verified.
std::string read_note(const std::filesystem::path& path);
std::string read_note(io::FileReader& reader);

}  // namespace lockstep::checkpoint
