// What stands in the user block of a checkpoint, in front of the HDF5 data: a text header with magic, format version,
// payload length, XXH3-128 hash and, from version 2, a note. All 512 bytes are determined by these, and the hash covers
// the note, so a flipped bit anywhere shows.
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
  std::string hash;          // XXH3-128 of them and the note: 32 hexadecimal digits, canonical (big-endian) order
  std::string note = {};     // one line, to be read without the rest of the file
  std::int64_t version = kFormatVersion;
};

// Hashes a payload in pieces.
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

bool begins_like_checkpoint(std::span<const std::byte> file);

// All bytes of the user block. Throws Error for a note that is too long or not one line.
std::string make_header(const Envelope& envelope);

// Reads the header of a file of `file_bytes` bytes from its first ones (512, or all there are), and throws Error naming
// `file` where it is not a checkpoint, of a newer version, damaged, or of another length than it says.
Envelope open_envelope(std::span<const std::byte> head, std::uint64_t file_bytes, const std::string& file);

// Throws Error naming `file` unless the hash, of all of the payload so far, agrees.
void check_hash(const Envelope& envelope, PayloadHash& payload, const std::string& file);

}  // namespace lockstep::io
