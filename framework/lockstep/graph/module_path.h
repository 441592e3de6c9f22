// The name under which messages and reports show a module path.
#pragma once

#include <string>

namespace lockstep {

// `path` itself, or "(model)" for the empty path, which stands for the root module and for values outside of all
// modules.
inline std::string path_or_model(const std::string& path) { return path.empty() ? "(model)" : path; }

}  // namespace lockstep
