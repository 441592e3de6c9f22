#include "lockstep/checkpoint/weights_source.h"

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/io/verified_file.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kWeightsSite = "weights";

namespace fs = std::filesystem;

WeightsSource found_in(const fs::path& named, Pick pick) {
  const fs::path inside = named / "checkpoints";
  std::error_code error;
  const fs::path folder = fs::is_directory(inside, error) ? inside : named;
  bool damaged = false;
  const auto report = [&](const Entry& entry, const std::string& reason) {
    damaged = true;
    log()->warn("checkpoint {} cannot be used: {}", entry.path.string(), reason);
  };
  const auto found = pick == Pick::Best ? best_whole(folder, report) : newest_whole(folder, report);
  check(found || !damaged, kWeightsSite,
        "no checkpoint in {}{} can be used (reasons above); expected one that can: name another folder or a file",
        folder.string(), pick == Pick::Best ? " that was evaluated" : "");
  check(found || pick == Pick::Newest || list(folder).empty(), kWeightsSite,
        "{} has no best checkpoint: none was evaluated in a run with --keep best:NAME; expected one, or leave out "
        "--best for the newest one, or name a file",
        folder.string());
  check(found.has_value(), kWeightsSite, "{} has no checkpoint, expected the folder of a run, or a file",
        folder.string());
  return {.file = found->path, .metadata = found->file.metadata()};
}

}  // namespace

WeightsSource find_weights(const fs::path& named, Pick pick) {
  std::error_code error;
  if (fs::is_directory(named, error)) return found_in(named, pick);
  check(pick == Pick::Newest || !fs::exists(named, error), kWeightsSite,
        "{} is a file, and --best was given; expected the folder of a run", named.string());
  io::FileReader reader(named);
  if (!io::begins_like_checkpoint(reader.peek(0, io::kEnvelopeBytes))) return {.file = named};  // of h5py
  const io::VerifiedFile file(reader, io::read_envelope(reader));
  return {.file = named, .metadata = file.image().metadata().value_or("")};
}

}  // namespace lockstep::checkpoint
