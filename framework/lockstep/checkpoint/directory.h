// The checkpoints of a run: OUTPUT/checkpoints/step-0000001200.h5, one per saved step. One process at a time writes and
// prunes; anyone may read meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/retention.h"
#include "lockstep/io/folder.h"

namespace lockstep::checkpoint {

struct Entry {
  std::int64_t step = 0;
  std::filesystem::path path;
};

// Steps are padded to ten digits, so that names sort as steps do.
std::string name_for(std::int64_t step);
std::filesystem::path path_for(const std::filesystem::path& directory, std::int64_t step);

// Files with such names, by rising step; their contents are not looked at. None where there is no directory; an Error
// where there is one that cannot be read.
std::vector<Entry> list(const std::filesystem::path& directory);
std::vector<Entry> list(const io::Folder& directory);

// Called for each newer file that cannot be used, with the sentence that says why.
using DamageReport = std::function<void(const Entry& entry, const std::string& reason)>;

struct Search {
  std::string run = {};  // files that say they are another run's are passed over; empty: any run's will do
  DamageReport damaged = {};
  std::function<void(const Entry& entry, const std::string& run)> foreign = {};  // called for each passed over
};

struct Found : Entry {
  StoredCheckpoint file;  // verified; no second look is needed
};

// The checkpoint of the highest step that loads: file hash and every tensor's checksum hold. Empty without any; tell a
// first start from a loss by the reports.
std::optional<Found> newest_whole(const std::filesystem::path& directory, const DamageReport& report = {});
std::optional<Found> newest_whole(const io::Folder& directory, const Search& search);

// What a checkpoint's note says of its weights in an evaluation; empty where it says nothing.
struct Score {
  double accuracy = 0, loss = 0;
};
std::string note_of(const std::string& run, const std::optional<Score>& score);
std::optional<Score> score_of(const std::string& note);
// Which run wrote it; empty: it does not say, as files of older versions do not.
std::string run_of(const std::string& note);

// Removes what `keep` does not, and what killed writers left behind. If none of those kept for being the newest is
// whole, the newest whole one stays as well; `whole` is a step known to be. Returns what was removed. Fault point:
// checkpoint.prune, at the newest step.
std::vector<Entry> prune(const io::Folder& directory, const Retention& keep,
                         std::optional<std::int64_t> whole = std::nullopt);

}  // namespace lockstep::checkpoint
