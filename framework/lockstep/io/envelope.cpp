#include "lockstep/io/envelope.h"

#include <fmt/format.h>

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "lockstep/core/error.h"

namespace lockstep::io {
namespace {

constexpr std::string_view kMagic = "LOCKSTEP CHECKPOINT\n";
constexpr std::string_view kVersion = "version ";
constexpr std::string_view kPayload = "payload ";
constexpr std::string_view kHash = "xxh3-128 ";
constexpr std::string_view kNote = "note ";
constexpr std::size_t kHashDigits = 32;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Spaces and a last newline fill the block, so that `head -n 5` shows it.
std::string header_text(const Envelope& envelope) {
  std::string text = fmt::format("{}{}{}\n{}{}\n{}{}\n", kMagic, kVersion, envelope.version, kPayload, envelope.payload,
                                 kHash, envelope.hash);
  if (envelope.version >= 2) text += fmt::format("{}{}\n", kNote, envelope.note);
  text.resize(kEnvelopeBytes - 1, ' ');
  return text + "\n";
}

// Removes `label`, a number and a newline from the front of `text` and returns the number; empty if they are not there.
std::optional<std::int64_t> take_number(std::string_view& text, std::string_view label) {
  if (!text.starts_with(label)) return std::nullopt;
  text.remove_prefix(label.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || end == text.data() + text.size() || *end != '\n') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

}  // namespace

void PayloadHash::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

PayloadHash::PayloadHash() : state_(XXH3_createState()) {
  if (!state_) throw Unavailable("[checkpoint] XXH3's hash state could not be allocated");
  check(XXH3_128bits_reset(state_.get()) == XXH_OK, "checkpoint", "XXH3's hash state cannot be reset");
}

void PayloadHash::update(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  check(XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()) == XXH_OK, "checkpoint", "XXH3 refused {} bytes",
        bytes.size());
}

std::string PayloadHash::digest() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  std::string hex;
  for (const unsigned char byte : canonical.digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

bool begins_like_checkpoint(std::span<const std::byte> file) { return text_of(file).starts_with(kMagic); }

std::string make_header(const Envelope& envelope) {
  check(envelope.note.size() <= kMaxNote && envelope.note.find('\n') == std::string::npos, "checkpoint",
        "the note has {} bytes, expected one line of at most {}", envelope.note.size(), kMaxNote);
  return header_text(envelope);
}

Envelope open_envelope(std::span<const std::byte> head, std::uint64_t file_bytes, const std::string& file) {
  const std::string_view all = text_of(head.first(std::min(head.size(), kEnvelopeBytes)));
  check(all.substr(0, kMagic.size()) == kMagic.substr(0, all.size()), "checkpoint",
        "{}: not a Lockstep checkpoint: it does not begin with \"{}\"", file, kMagic.substr(0, kMagic.size() - 1));
  check(all.size() == kEnvelopeBytes, "checkpoint", "{}: cut short: has {} bytes, expects at least {}", file,
        file_bytes, kEnvelopeBytes);

  std::string_view rest = all.substr(kMagic.size());
  const auto version = take_number(rest, kVersion);
  check(!version || *version <= kFormatVersion, "checkpoint",
        "{}: format version {} is newer than this build, which reads up to {}", file, version.value_or(0),
        kFormatVersion);
  const auto payload = take_number(rest, kPayload);
  Envelope envelope;
  if (version.value_or(0) >= 1 && payload && rest.starts_with(kHash)) {
    envelope = {.payload = *payload, .hash = std::string(rest.substr(kHash.size(), kHashDigits)), .version = *version};
    rest.remove_prefix(std::min(rest.size(), kHash.size() + kHashDigits + 1));
    if (rest.starts_with(kNote)) envelope.note = rest.substr(kNote.size(), rest.find('\n') - kNote.size());
  }
  check(!envelope.hash.empty() && header_text(envelope) == all, "checkpoint",
        "{}: damaged: the header in the first {} bytes is not as Lockstep writes it", file, kEnvelopeBytes);

  const std::uint64_t expected = static_cast<std::uint64_t>(envelope.payload) + kEnvelopeBytes;
  check(file_bytes >= expected, "checkpoint", "{}: cut short: has {} bytes, expects {}", file, file_bytes, expected);
  check(file_bytes == expected, "checkpoint", "{}: too long: has {} bytes, expects {}", file, file_bytes, expected);
  return envelope;
}

void check_hash(const Envelope& envelope, PayloadHash& payload, const std::string& file) {
  payload.update(std::as_bytes(std::span(envelope.note)));
  const std::string hash = payload.digest();
  check(hash == envelope.hash, "checkpoint", "{}: damaged: XXH3-128 of its contents is {}, expects {}", file, hash,
        envelope.hash);
}

}  // namespace lockstep::io
