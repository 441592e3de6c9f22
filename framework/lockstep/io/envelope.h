// The user block of a checkpoint, in front of the HDF5 data: a text header with magic, format version, payload length,
// XXH3-128 hash and, from version 2, a note. These values determine all 512 bytes, and the hash covers the note, so
// every flipped bit is detected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct XXH3_state_s;

namespace lockstep::io {

inline constexpr std::size_t kEnvelopeBytes = 512;  // HDF5's smallest user block
inline constexpr int kFormatVersion = 2;            // 1: no note, no checksums of tensors
inline constexpr std::size_t kMaxNote = 256;        // bytes

struct Envelope {
  std::int64_t payload = 0;  // bytes behind the user block
  std::string hash;          // XXH3-128 of payload and note: 32 hexadecimal digits, canonical (big-endian) order
  std::string note = {};     // one line that can be read without the rest of the file
  std::int64_t version = kFormatVersion;
};

// Computes the hash of a payload that arrives in pieces.
class PayloadHash {
 public:
  PayloadHash();
  void update(std::span<const std::byte> bytes);
  std::string digest() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

// Returns whether `file` begins with the magic of a checkpoint.
bool begins_like_checkpoint(std::span<const std::byte> file);

// Makes all bytes of the user block. Throws Error for a note that is too long or not one line.
std::string make_header(const Envelope& envelope);

// Reads the header from `head`, the first 512 bytes of a file (or all bytes, if it is shorter) of `file_bytes` bytes.
// Throws Error with `file` if the file is no checkpoint, has a newer version, is damaged, or has a wrong length.
Envelope open_envelope(std::span<const std::byte> head, std::uint64_t file_bytes, const std::string& file);

// Throws Error with `file` unless the hash of the whole payload matches; `payload` has hashed it.
void check_hash(const Envelope& envelope, PayloadHash& payload, const std::string& file);

}  // namespace lockstep::io
