// Where the files of data sets come from, with the checksums of what must arrive. A source is a row of sources.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::datasets {

struct RemoteFile {
  enum class Checksum : std::uint8_t { File, Content };  // Content: of the inflated bytes, as mirrors pack anew

  std::string name;
  std::string sha256;
  Checksum of = Checksum::File;
  std::int64_t bytes = 0;              // of the file; 0: it differs between mirrors
  std::vector<std::string> members{};  // files to unpack from an archive, with their folder; empty: no archive
};

struct Source {
  std::string name;     // what `lockstep-data fetch` calls it
  std::string dataset;  // the entry of the catalogue that reads it
  std::string url;      // of the folder, with a slash at its end
  std::string folder;   // below --data-dir, for files that are no archives
  std::string license;  // what the authors ask of users
  std::vector<RemoteFile> files;
};

std::span<const Source> sources();
// Throws Error with the names that there are.
const Source& find_source(std::string_view name);

}  // namespace lockstep::datasets
