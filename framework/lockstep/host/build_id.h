// Returns a text that identifies the build of the running program: the linker's build ids of the program and of the
// library with this function or, if there are none, the sizes of their loaded segments. Copies of a file have one text.
#pragma once

#include <string>

namespace lockstep::host {

std::string build_id();

}  // namespace lockstep::host
