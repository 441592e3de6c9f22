// Manual pages in the format of man(7), made of what a program's parser offers.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/train/options/program_description.h"

namespace lockstep::train {

// Returns the page of `program`, which lists its commands with their options. The first line of `version` stands in the
// page's foot.
std::string man_page(const ProgramDescription& program, std::string_view version);

// Returns the names of files ("lockstep.1", "lockstep-run.1") and their texts: a page of the program, and one of each
// of its commands, to which the first one refers.
std::vector<std::pair<std::string, std::string>> man_pages(const ProgramDescription& program, std::string_view version);

}  // namespace lockstep::train
