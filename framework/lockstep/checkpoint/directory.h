// The checkpoints of a run: OUTPUT/checkpoints/step-0000001200.h5, one per saved step. One process at a time writes and
// prunes; anyone may read meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

struct Entry {
  std::int64_t step = 0;
  std::filesystem::path path;
};

// Steps are padded to ten digits, so that names sort as steps do.
std::filesystem::path path_for(const std::filesystem::path& directory, std::int64_t step);

// Files with such names, by rising step; their contents are not looked at. None where there is no directory; an Error
// where there is one that cannot be read.
std::vector<Entry> list(const std::filesystem::path& directory);

// Called for each newer file that cannot be used, with the sentence that says why.
using DamageReport = std::function<void(const Entry& entry, const std::string& reason)>;

// The checkpoint of the highest step that verifies. Empty without any; tell a first start from a loss by the reports.
std::optional<Entry> newest_whole(const std::filesystem::path& directory, const DamageReport& report = {});

// Removes all but the `keep` (at least 1) newest, and what killed writers left behind. If none of those kept is whole,
// the newest whole one stays as well. Returns what was removed.
std::vector<Entry> prune(const std::filesystem::path& directory, std::int64_t keep);

}  // namespace lockstep::checkpoint
