// C99 source that computes a model of ONNX, for codes that only infer: it needs a C compiler and libm, no MPI and no
// library of ours. The files are NAME.c, NAME.h and NAME.weights, whose numbers a program may also read by itself and
// send to its ranks. One thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep::onnx {

struct CSource {
  std::string source, header;
  std::string weights;      // bytes of NAME.weights
  std::int64_t memory = 0;  // bytes that a model needs beside its weights
};

// Returns the source for the model of a file. `name` begins the names of its functions. Throws Error where the file has
// an operator without a form here, other than one output, or sizes other than the number of samples that are open.
CSource c_source(const std::filesystem::path& file, const std::string& name);

// Writes the three files; `path` ends in .c, and its name without that end begins the names of the functions. Throws
// Error for a name that C does not allow, and where a file cannot be written.
CSource write_c_source(const std::filesystem::path& file, const std::filesystem::path& path);

}  // namespace lockstep::onnx
