// The checkpoints of a run: files OUTPUT/checkpoints/step-0000001200.h5, one per saved step. One process at a time
// writes and prunes; other processes may read at the same time. Any thread may call these functions. They throw Error
// with the file, the operation and the system's reason. A search passes over files that are damaged or missing; it
// throws Unavailable (core/error.h) at one that the system does not give, which may be the one that is wanted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/retention.h"
#include "lockstep/io/folder.h"

namespace lockstep::checkpoint {

// A checkpoint file, known by its name alone.
struct Entry {
  std::int64_t step = 0;
  std::filesystem::path path;
};

// Returns the file name of a step, with the step padded to ten digits so that names sort by step.
std::string name_for(std::int64_t step);
// Returns the path of the checkpoint of `step` in `directory`; throws Error for a negative step.
std::filesystem::path path_for(const std::filesystem::path& directory, std::int64_t step);

// Lists the files that name_for() names, by rising step, without opening them. Returns an empty list if the directory
// does not exist; throws Error if it exists and cannot be read.
std::vector<Entry> list(const std::filesystem::path& directory);
std::vector<Entry> list(const io::Folder& directory);

// Called for each newer file that is damaged, or whose base is missing, with the reason as one sentence.
using DamageReport = std::function<void(const Entry& entry, const std::string& reason)>;

struct Search {
  std::string run = {};  // id of the run whose files are wanted; files of other runs are skipped; empty: any run
  DamageReport damaged = {};
  std::function<void(const Entry& entry, const std::string& run)> foreign = {};  // called for each skipped file
};

struct Found : Entry {
  StoredCheckpoint file;  // open and verified
};

// Opens the checkpoint of the highest step whose file hash and tensor checksums all match. Returns empty if there is
// none; the reports tell a first start (no report) from a loss (damaged files).
std::optional<Found> newest_whole(const std::filesystem::path& directory, const DamageReport& report = {});
std::optional<Found> newest_whole(const io::Folder& directory, const Search& search);

// The result of evaluating a checkpoint's weights.
struct Score {
  double loss = 0;                             // mean over the samples
  std::map<std::string, double> metrics = {};  // those with one result, by name
};
// Makes the note of a checkpoint (Draft::note): the run's id and, if it was evaluated, its score, and whether the
// highest or the lowest value is the best by the rule `keep.best`, whose metric is then the only one of the score.
std::string note_of(const std::string& run, const std::optional<Score>& score, const Retention& keep = {});
// Returns the rule that a note contains (Retention::best and higher_is_better); empty: none.
std::optional<Retention> rule_of(const std::string& note);
// Returns the score that a note contains; empty: none.
std::optional<Score> score_of(const std::string& note);
// Returns the id of the run that wrote the file; empty: the note has none, as in files of older versions.
std::string run_of(const std::string& note);

// The best of the evaluated checkpoints, the oldest one of equal values.
struct Best : Entry {
  std::string metric = {};  // a metric's name, or Retention::kLoss
  double value = 0;
};
// Returns the best checkpoint by the rule `keep.best`, and reads notes alone; empty: none was evaluated.
std::optional<Best> best(const io::Folder& directory, const Retention& keep);
// Opens the best checkpoint whose file hash and tensor checksums all match, by the rule with which the newest evaluated
// checkpoint was written. Returns empty if there is none: without --keep best:NAME, checkpoints have no rule.
std::optional<Found> best_whole(const std::filesystem::path& directory, const DamageReport& report = {});

// Removes the checkpoints that `keep` does not keep, and temporary files of killed writers. If none of the newest kept
// files is whole (its hash matches), the newest whole file stays too; so does each file that is the base of an
// increment (increment.h) that stays, and with a rule `keep.best` each file that the system does not give at present.
// `whole` is a step that is known to be whole.
// Returns the removed entries. Fault point: checkpoint.prune, at the newest step.
std::vector<Entry> prune(const io::Folder& directory, const Retention& keep,
                         std::optional<std::int64_t> whole = std::nullopt);

}  // namespace lockstep::checkpoint
