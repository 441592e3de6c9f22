// An HDF5 file of tensors with an envelope in front (envelope.h), written tensor by tensor: the hash is computed over
// what is written, and the header, which holds it, is written last.
#pragma once

#include <optional>
#include <string>

#include "lockstep/io/atomic_file.h"
#include "lockstep/io/envelope.h"
#include "lockstep/io/image_write.h"

namespace lockstep::io {

struct SealedFileOptions {
  std::optional<std::string> metadata = {};  // see image_write.h
  std::string note = {};                     // one line of at most kMaxNote bytes
};

class SealedFile {
 public:
  // Asks for each tensor once, and throws what ImageStream does, and Error for a note that does not fit; nothing is
  // written yet. `file` is for messages.
  SealedFile(TensorSource tensors, SealedFileOptions options, std::string file);

  std::uint64_t bytes() const { return kEnvelopeBytes + image_.bytes(); }
  // Writes the whole file; commit() is the caller's. Asks for each tensor once more.
  void write(AtomicFile& out) const;

 private:
  std::string note_;
  ImageStream image_;
};

}  // namespace lockstep::io
