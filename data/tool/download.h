// One file from a URL or a local folder to a path, whole or not at all: bytes arrive in PATH.part, which a later call
// goes on with; the checksum is verified before the file gets its name.
#pragma once

#include <filesystem>
#include <string>

#include "data/tool/sources.h"

namespace lockstep::datasets {

// `from` is a URL (http, https, file) or the path of a local file. URLs are read by the curl program. A download that
// broke off is resumed; it begins again where the server cannot resume, or where the resumed file is not as expected.
// Throws Error for failures, for a file whose size or checksum is not that of `expected`, and where another process
// fetches the same file.
void download(const std::string& from, const RemoteFile& expected, const std::filesystem::path& to);

// Empty where the file at `path` has the size and the checksum of `expected`; else the difference, for a message.
std::string difference(const std::filesystem::path& path, const RemoteFile& expected);

}  // namespace lockstep::datasets
