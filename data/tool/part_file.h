// PATH.part, the file that becomes PATH when it is complete: how it is opened and written. Throws Error with the path
// and the system's reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::datasets {

// Opens `path` for writing, with `flags` of open(), and creates it where it does not exist. Throws Error for a link, a
// folder, and what is no regular file: a FIFO would wait for a reader for ever.
io::FileDescriptor open_part(const std::filesystem::path& path, int flags);

// Writes all bytes at the present position of the file, which `path` names in errors.
void write_all(const io::FileDescriptor& file, std::span<const std::uint8_t> bytes, const std::filesystem::path& path);

}  // namespace lockstep::datasets
