// The names in generated C that a user's words are part of: the model's, from the name of the file, and those of its
// inputs.
#pragma once

#include <string>

namespace lockstep::onnx {

// The text in capital letters.
std::string c_upper(std::string text);

// Throws Error for a name that cannot begin the names of functions.
void require_c_name(const std::string& name);

// The name of an input in the header, which C and C++ include.
std::string c_name_of_input(const std::string& name);
// And in the source, where no other name has its beginning.
std::string c_argument_of_input(const std::string& name);

}  // namespace lockstep::onnx
