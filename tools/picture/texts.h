// Texts in pictures of plans.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::tools {

// As HTML-like labels of Graphviz, quoted names of it, and XML have it.
std::string escaped(std::string_view text);
// Cut to 64 letters; `lockstep inspect --plan` has the whole.
std::string shortened(const std::string& text);
// Room for a browser whose letters are wider than those that dot has measured.
std::string slack(const std::string& text);
// Numbers of steps, from 1: "8, 9"; of four or more with equal distances "8 to 118 by 10".
std::string numbers_of(const std::vector<std::size_t>& steps);
std::string size_text(std::size_t bytes);
std::string work_text(double flops);

}  // namespace lockstep::tools
