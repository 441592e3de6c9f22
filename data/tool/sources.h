// The sources of the files of data sets, with their checksums. A source is a row of sources.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::datasets {

struct RemoteFile {
  enum class Checksum : std::uint8_t {
    File,
    Content
  };  // Content: of the inflated bytes, as mirrors compress files again

  std::string name;
  std::string sha256;
  Checksum of = Checksum::File;
  std::int64_t bytes = 0;              // size of the file; 0: it differs between mirrors
  std::vector<std::string> members{};  // files to unpack from an archive, with their folder; empty: no archive
};

struct Source {
  std::string name;     // for `lockstep-data fetch`
  std::string dataset;  // the entry of the catalogue that reads it
  std::string url;      // of the folder, with a slash at its end
  std::string folder;   // below --data-dir, for files that are no archives
  std::string license;  // conditions of the authors
  std::vector<RemoteFile> files;
};

std::span<const Source> sources();
// Returns the source of this name. Throws Error that lists the names if there is none.
const Source& find_source(std::string_view name);

}  // namespace lockstep::datasets
