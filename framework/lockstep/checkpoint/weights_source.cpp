#include "lockstep/checkpoint/weights_source.h"

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/io/verified_file.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kWeightsSite = "weights";

namespace fs = std::filesystem;

WeightsSource newest_in(const fs::path& named) {
  const fs::path inside = named / "checkpoints";
  std::error_code error;
  const fs::path folder = fs::is_directory(inside, error) ? inside : named;
  bool damaged = false;
  const auto newest = newest_whole(folder, [&](const Entry& entry, const std::string& reason) {
    damaged = true;
    log()->warn("checkpoint {} cannot be used: {}", entry.path.string(), reason);
  });
  check(newest || !damaged, kWeightsSite, "every checkpoint in {} is damaged", folder.string());
  check(newest.has_value(), kWeightsSite, "{} has no checkpoint, expected the folder of a run, or a file",
        folder.string());
  return {.file = newest->path, .metadata = newest->file.metadata()};
}

}  // namespace

WeightsSource find_weights(const fs::path& named) {
  std::error_code error;
  if (fs::is_directory(named, error)) return newest_in(named);
  io::FileReader reader(named);
  if (!io::begins_like_checkpoint(reader.peek(0, io::kEnvelopeBytes))) return {.file = named};  // of h5py
  const io::VerifiedFile file(reader, io::read_envelope(reader));
  return {.file = named, .metadata = file.image().metadata().value_or("")};
}

}  // namespace lockstep::checkpoint
