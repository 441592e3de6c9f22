// Downloads one file from a URL, or copies it from a local folder. Bytes arrive in PATH.part, and a later call
// continues from there; the file gets its name after its checksum was verified.
#pragma once

#include <filesystem>
#include <string>

#include "data/tool/sources.h"

namespace lockstep::datasets {

// Downloads a file. `from` is a URL (http, https, file), which the curl program reads, or the path of a local file. An
// interrupted download is resumed; it starts again if the server cannot resume, or if the resumed file is not the
// expected one. Throws Error for failures, for a size or checksum that differs from `expected`, and if another process
// downloads the same file.
void download(const std::string& from, const RemoteFile& expected, const std::filesystem::path& to);

// Returns an empty text if the file at `path` has the size and the checksum of `expected`; else the difference, for a
// message.
std::string difference(const std::filesystem::path& path, const RemoteFile& expected);

}  // namespace lockstep::datasets
