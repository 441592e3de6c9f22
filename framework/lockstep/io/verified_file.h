// An open file that SealedFile (sealed_file.h) wrote and whose hash matches. The file is read and hashed in one pass
// before HDF5 reads a byte; tensors are then read one by one. One thread at a time.
#pragma once

#include <string>

#include "lockstep/io/envelope.h"
#include "lockstep/io/image_read.h"
#include "lockstep/io/mapped_file.h"
#include "lockstep/io/read_file.h"

namespace lockstep::io {

// Reads the file's envelope, and verifies nothing else. The reader must be at the start of its file.
Envelope read_envelope(FileReader& reader);
// Reads and hashes the rest of a file after read_envelope(), in constant memory; throws Error with the file unless the
// hash matches.
void verify_payload(FileReader& reader, const Envelope& envelope);

class VerifiedFile {
 public:
  // Verifies and opens a file after read_envelope(). Throws what verify_payload() and ImageReader throw.
  VerifiedFile(FileReader& reader, Envelope envelope);

  const std::string& path() const { return path_; }
  const Envelope& envelope() const { return envelope_; }
  std::size_t bytes() const { return mapping_.bytes().size(); }
  const ImageReader& image() const { return image_; }
  // Returns all tensors, sorted by name; the source must not outlive this object.
  TensorSource tensors();
  // Reads every tensor once and throws Error if a checksum does not match.
  void verify_tensors() const;

 private:
  std::string path_;
  Envelope envelope_;
  MappedFile mapping_;
  ImageReader image_;
  NamedTensor current_;  // the tensor that tensors() returned last
};

}  // namespace lockstep::io
