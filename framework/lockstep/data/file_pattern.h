// Names of files with wildcards, as a shell expands them: "run*.h5", "part-[0-9].csv".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::data {

// Returns the files of each pattern, sorted by bytes within a pattern, in the order of the patterns; a relative pattern
// is below `dir`. A name that exists is taken as it is, also with wildcards in it. Throws Error for an empty list, for
// a pattern without a file, for a folder, and for a file that two patterns bring.
std::vector<std::filesystem::path> expand_files(const std::vector<std::string>& patterns,
                                                const std::filesystem::path& dir = {});

}  // namespace lockstep::data
