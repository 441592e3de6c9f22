// Replacing a file so that, whatever happens and whenever, its name leads to the old contents or to the new ones,
// whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "lockstep/io/folder.h"

namespace lockstep::checkpoint {

// Writes `bytes` to a temporary file beside `path`, flushes it to the disk, renames it to `path` and flushes the
// directory. On failure the temporary is removed, what was at `path` stays, and the Error names file, operation and the
// system's reason. Fault points (core/fault_point.h): checkpoint.write in the middle of the file and checkpoint.rename,
// at `step`.
void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes, std::int64_t step = 0);
// The same in a folder that is held open: if it is moved meanwhile, its file is in the folder where it is then.
void replace_file(const Folder& folder, const std::string& name, std::span<const std::byte> bytes,
                  std::int64_t step = 0);

// Removes temporaries in `directory` that writers of replace_file left when they were killed. One whose writer may be
// alive stays: its lock is held, or it was made on another host within the last hour.
void remove_abandoned(const Folder& directory);

}  // namespace lockstep::checkpoint
