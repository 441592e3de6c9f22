// Which build of a program runs: the ids that the linker wrote into the program and into the library that holds this
// function, or, where it wrote none, sizes of their loaded parts. Equal for copies of one file.
#pragma once

#include <string>

namespace lockstep::host {

std::string build_id();

}  // namespace lockstep::host
