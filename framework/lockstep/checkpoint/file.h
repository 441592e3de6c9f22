// A checkpoint on disk: an HDF5 file that h5py opens directly. Its user block contains a hash of the contents, which is
// verified before HDF5 reads a byte. Tensors are written and read one at a time. Any thread may call these functions;
// they throw Error with the file, the cause and the expectation; Unavailable (core/error.h) if the system does not give
// the file or memory, so that nothing is known about the file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/increment.h"
#include "lockstep/io/named_tensor.h"
#include "lockstep/io/sealed_file.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/io/verified_file.h"

namespace lockstep::checkpoint {

struct Checkpoint {
  std::vector<io::NamedTensor> tensors;  // load() returns them sorted by name
  std::string metadata;                  // JSON text, stored unchanged under "metadata": no tensor may have that name
};

// A checkpoint that is to be written; its tensors are produced one by one, on request.
struct Draft {
  io::TensorSource tensors;
  std::string metadata;
  std::string note = {};  // one line of at most kMaxNote bytes; read_note() reads it without the rest of the file
  std::int64_t step = 0;  // the step that fault points compare with
};

// Lays out the file of a draft without writing it. The result refers to the draft's tensors; it requests each of them
// once now, for its checksum, and once in write(). `file` names the file in messages.
io::SealedFile seal(const Draft& draft, const std::string& file);

// Writes the checkpoint to `path`: at every instant, `path` is the old file or the new file, and the new file is on the
// disk when the function returns. Needs memory for one tensor beside the draft's source. Equal contents give equal
// bytes. Throws Error on failure; then the old file stays and no other file is left.
void save(const std::filesystem::path& path, const Checkpoint& checkpoint);
void save(const std::filesystem::path& path, const Draft& draft);

// Opens the base of an increment (increment.h), a file with this name; throws Error if there is none.
using OpenBase = std::function<io::FileReader(const std::string& name)>;
// Finds the base beside the increment `path`, or in the folder "checkpoints" beside the increment's folder, from which
// a resume may have moved the increment.
OpenBase base_beside(const std::filesystem::path& path);

// An open checkpoint whose file hash and tensor checksums were verified. An increment is opened together with its base,
// which is verified too, and has the tensors of a complete checkpoint. One thread at a time.
class StoredCheckpoint {
 public:
  // Reads the rest of a file whose envelope read_envelope() has read: hashes it in one pass, then verifies each tensor.
  // Throws Error with the file if a hash does not match, or if the base of an increment cannot be used.
  StoredCheckpoint(io::FileReader& reader, io::Envelope envelope, const OpenBase& open_base);

  const std::string& path() const { return file_->path(); }
  const std::string& note() const { return file_->envelope().note; }
  const std::string& hash() const { return file_->envelope().hash; }
  const std::string& metadata() const { return *file_->image().metadata(); }
  // Returns the tensors, sorted by name; with `changes` also the numbers of the rows that an increment has. A tensor is
  // valid until the next one is requested; the source must not outlive this object.
  io::TensorSource tensors(bool changes = false) { return merged_ ? merged_->tensors(changes) : file_->tensors(); }
  Checkpoint read();  // reads the whole checkpoint into memory

 private:
  std::unique_ptr<io::VerifiedFile> file_, base_;  // base_: of an increment
  std::unique_ptr<MergedTensors> merged_;
};

// Opens and verifies a checkpoint. The first form calls `wanted` with the note before it reads the rest, and returns
// empty if that returns false.
std::optional<StoredCheckpoint> open_checkpoint(io::FileReader& reader, const OpenBase& open_base,
                                                const std::function<bool(const std::string&)>& wanted);
StoredCheckpoint open_checkpoint(const std::filesystem::path& path);

// Opens, verifies and reads a whole checkpoint into memory.
Checkpoint load(const std::filesystem::path& path);

// Verifies magic, version, length and file hash in constant memory; throws Error with the file if one does not match.
// load() verifies the checksum of each tensor as well, and the base of an increment.
void verify(const std::filesystem::path& path);
void verify(io::FileReader& reader);

// Reads the note in the file's header, and verifies nothing else.
std::string read_note(const std::filesystem::path& path);
std::string read_note(io::FileReader& reader);

}  // namespace lockstep::checkpoint
