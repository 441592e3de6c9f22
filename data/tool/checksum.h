// SHA-256 checksums of files, in lower-case hexadecimal. They throw Error for a file that cannot be read.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::datasets {

std::string sha256_of_file(const std::filesystem::path& path);
// The checksum of the content of a gzip file. Throws Error for a file that is not a complete gzip file.
std::string sha256_of_content(const std::filesystem::path& path);

}  // namespace lockstep::datasets
