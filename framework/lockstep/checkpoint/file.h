// A checkpoint on disk: an HDF5 file that h5py opens directly, with a hash of its contents in the user block that is
// checked before HDF5 sees a byte. No MPI: rank 0 may read_checkpoint() and broadcast the bytes, and the other ranks
// parse() them. Failures are Errors that name the file and what was expected; functions may be called from any
// thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"
#include "lockstep/io/sealed_file.h"
#include "lockstep/io/tensor_source.h"

namespace lockstep::checkpoint {

class FileReader;

struct Checkpoint {
  std::vector<NamedTensor> tensors;  // load() gives them sorted by name
  std::string metadata;              // JSON text, kept as it is; "metadata" is therefore no tensor's name
};

// A checkpoint to be written, whose tensors are made when they are asked for.
struct Draft {
  TensorSource tensors;
  std::string metadata;
  std::string note = {};  // one line of at most kMaxNote bytes, which read_note() finds without the rest
  std::int64_t step = 0;  // what fault points count it as
};

// From the bytes of a file; `place` names it in messages. Verifies as load() does.
Checkpoint parse(std::span<const std::byte> bytes, const std::string& place);

// A file that was read and verified once: what is in it, and its bytes for ranks that did not read it.
struct LoadedFile {
  Checkpoint contents;
  std::string note;  // of its header
  std::vector<std::byte> bytes;
};

// Reads the file from one end to the other, once, and hashes it as it comes: magic, version, length, hash and each
// tensor's checksum hold. `wanted` is asked with the note before anything else is read; empty: it said no.
std::optional<LoadedFile> read_checkpoint(FileReader& reader, const std::function<bool(const std::string&)>& wanted);
LoadedFile read_checkpoint(const std::filesystem::path& path);

// A checkpoint that is laid out and waits to be written; refers to the draft's tensors, and asks for each of them once
// now and once in write(). `place` is for messages.
SealedFile seal(const Draft& draft, const std::string& place);

// Writes the file so that at every instant `path` is the old one or the new one, on the disk when this returns. Takes
// memory for one tensor at a time, beside what the draft's source holds. The same contents give the same bytes. On
// failure the old file stays and nothing else is left behind.
void save(const std::filesystem::path& path, const Checkpoint& checkpoint);
void save(const std::filesystem::path& path, const Draft& draft);

Checkpoint load(const std::filesystem::path& path);

// Magic, version, length and hash hold; in constant memory. load() looks at each tensor's checksum beside.
void verify(const std::filesystem::path& path);
void verify(FileReader& reader);

// The note in the file's header, of which nothing else is read or verified.
std::string read_note(const std::filesystem::path& path);
std::string read_note(FileReader& reader);

}  // namespace lockstep::checkpoint
