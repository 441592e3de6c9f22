// Tensors of a file of ONNX: its message TensorProto.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lockstep/core/tensor.h"

namespace lockstep::onnx {

struct NamedFileTensor {
  std::string name;
  Tensor tensor;
};

// Reads a tensor; half-precision types become f32, int8 and bool become i32. `folder` has the files of weights that a
// tensor may name. Throws Error for another type, and for a number of elements that is not that of the shape.
NamedFileTensor read_tensor(std::string_view message, const std::filesystem::path& folder);

}  // namespace lockstep::onnx
