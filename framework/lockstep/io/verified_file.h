// A file of SealedFile (sealed_file.h) that is open, and whose hash holds. It is read from one end to the other once,
// and hashed as it comes, before HDF5 sees a byte; tensors are then read one by one.
#pragma once

#include <string>

#include "lockstep/io/envelope.h"
#include "lockstep/io/image_read.h"
#include "lockstep/io/mapped_file.h"
#include "lockstep/io/read_file.h"

namespace lockstep::io {

// The file's envelope, of which nothing else is read or verified. For a reader at the begin of its file.
Envelope read_envelope(FileReader& reader);
// Reads the rest of a file, of which read_envelope() gave the envelope, in constant memory; throws Error that names the
// file unless its hash holds.
void verify_payload(FileReader& reader, const Envelope& envelope);

class VerifiedFile {
 public:
  // Of a file of which read_envelope() gave the envelope. Throws what verify_payload() and ImageReader throw.
  VerifiedFile(FileReader& reader, Envelope envelope);

  const std::string& path() const { return path_; }
  const Envelope& envelope() const { return envelope_; }
  std::size_t bytes() const { return mapping_.bytes().size(); }
  const ImageReader& image() const { return image_; }
  // All tensors, sorted by name; refers to this.
  TensorSource tensors();
  // Reads every tensor once, so that its checksum is known to hold.
  void verify_tensors() const;

 private:
  std::string path_;
  Envelope envelope_;
  MappedFile mapping_;
  ImageReader image_;
  NamedTensor current_;  // the tensor handed out last
};

}  // namespace lockstep::io
