// SHA-256 of files, in lower-case hexadecimal.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::datasets {

std::string sha256_of_file(const std::filesystem::path& path);
// Of the bytes that a gzip file holds. Throws Error where it is not a whole gzip file.
std::string sha256_of_content(const std::filesystem::path& path);

}  // namespace lockstep::datasets
