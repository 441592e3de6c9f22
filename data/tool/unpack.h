// Files out of an archive (tar, compressed or not).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::datasets {

// Writes `members` of the archive below `folder`, each whole or not at all, and nothing else of it. Throws Error for an
// archive that cannot be read, and for members that it lacks or that are no regular files.
void unpack(const std::filesystem::path& archive, const std::vector<std::string>& members,
            const std::filesystem::path& folder);

}  // namespace lockstep::datasets
