// Which build of a program and of its libraries runs: the ids that the linker wrote into them, or, where it wrote none,
// sizes of their loaded parts. Equal for copies of one file.
#pragma once

#include <string>
#include <vector>

namespace lockstep::host {

// Of the program, and of the library that holds this function where that is another file.
std::string build_id();

struct LibraryId {
  std::string name;  // "libmpi.so.40"
  std::string id;
};
// Of the shared libraries that are loaded now, by name.
std::vector<LibraryId> library_ids();

}  // namespace lockstep::host
