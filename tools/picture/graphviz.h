// Graphviz's program `dot`, which lays out a graph and draws it. It is needed for that alone, at run time.
#pragma once

#include <string>

#include "tools/picture/dot_text.h"

namespace lockstep::tools {

// Returns the graph as SVG, with its title and description. Throws Error where the program is not in PATH or fails.
// Not while another thread starts processes that must not inherit files.
std::string svg_of(const std::string& dot_text, const PictureTexts& texts);

}  // namespace lockstep::tools
