// Extraction of files from an archive (tar, compressed or not).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::datasets {

// Writes these members of the archive below `folder`, each completely or not at all, and no other member. Throws Error
// for an archive that cannot be read, for a missing member, and for a member that is not a regular file.
void unpack(const std::filesystem::path& archive, const std::vector<std::string>& members,
            const std::filesystem::path& folder);

}  // namespace lockstep::datasets
