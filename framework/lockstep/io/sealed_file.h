// An HDF5 file of tensors after an envelope (envelope.h), written tensor by tensor. The hash is computed over the
// written bytes; the header contains the hash and is written last.
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
  // Requests each tensor once and writes nothing. Throws what ImageStream throws, and Error for a note that is too long
  // or not one line. `file` names the file in messages.
  SealedFile(TensorSource tensors, SealedFileOptions options, std::string file);

  std::uint64_t bytes() const { return kEnvelopeBytes + image_.bytes(); }
  // Writes the whole file, and requests each tensor once more. The caller calls out.commit(). Returns the hash.
  std::string write(AtomicFile& out) const;

 private:
  std::string note_;
  ImageStream image_;
};

}  // namespace lockstep::io
