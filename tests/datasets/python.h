// Python programs within tests: NumPy or an HTTP server, where this machine has them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::datasets {

// A python3 that can import `modules`; empty: none. The first one of the PATH may be one without Debian's packages.
inline std::string find_python(const std::string& modules) {
  for (const std::string python : {"python3", "/usr/bin/python3"}) {
    if (std::system((python + " -c 'import " + modules + "' 2>/dev/null").c_str()) == 0) return python;
  }
  return "";
}

// The status of `program`, run in `folder`.
inline int run_python(const std::string& python, const std::filesystem::path& folder, const std::string& program) {
  std::ofstream(folder / "program.py") << program;
  return std::system(("cd '" + folder.string() + "' && " + python + " program.py").c_str());
}

}  // namespace lockstep::datasets
