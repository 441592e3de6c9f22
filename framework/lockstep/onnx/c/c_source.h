// C99 source that computes a model of ONNX, for codes that only infer: it needs a C compiler and libm, no MPI and no
// library of ours. The files are NAME.c, NAME.h and NAME.weights, whose numbers a program may also read by itself and
// send to its ranks. One thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::onnx {

struct CSource {
  std::string source, header;
  std::string weights;      // bytes of NAME.weights
  std::int64_t memory = 0;  // bytes that a model needs beside its weights
};

// Returns the source for the model of a file. `name` begins the names of its functions. Throws Error where the file has
// an operator without a form here, other than one output, or sizes other than the number of samples that are open.
CSource c_source(const std::filesystem::path& file, const std::string& name);

// Returns the name of the model of ONNX that is written beside C source which is made of another model: NAME.onnx of
// `path`, NAME.c. Throws Error for a name that C does not allow, and where that file is one of `sources`, the files
// that the model is read from, which would be lost.
std::filesystem::path onnx_beside(const std::filesystem::path& path, const std::vector<std::string>& sources);

// Writes the three files; `path` ends in .c, and its name without that end begins the names of the functions. Throws
// Error for a name that C does not allow, and where a file cannot be written.
CSource write_c_source(const std::filesystem::path& file, const std::filesystem::path& path);

}  // namespace lockstep::onnx
