// Arrays of the calling program: what lockstep_array says, checked, and the ways from and to tensors. A View refers to
// the program's memory and owns nothing. Functions throw CodedError (LOCKSTEP_ERROR_ARGUMENT) that names the array.
#pragma once

#include <lockstep_c.h>

#include <cstdint>
#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep::bindings {

struct View {
  const char* name = "";  // of the argument, for messages
  void* data = nullptr;   // address of the element with indices 0
  DType type = DType::F64;
  Shape shape{};                       // samples first
  std::vector<std::int64_t> stride{};  // elements between neighbours, as many as dimensions

  std::int64_t samples() const { return shape[0]; }
  bool is_dense() const;  // row-major, without gaps
};

// Reads a descriptor whose samples have the shape `sample`, but for extents of 1: the view has that shape.
View view_of(const lockstep_array* array, const char* name, const Shape& sample);

// Returns the elements as a tensor of this type, over the program's memory where that is dense and of the type, else as
// a copy. F32 and F64 are converted into each other; I32 stays I32.
Tensor tensor_of(const View& view, DType type);
// Writes a tensor of the view's shape to the program's memory, converted as above.
void write_to(const View& view, const Tensor& tensor);
// Throws unless two arrays have equally many samples.
void check_samples(const View& a, const View& b);

}  // namespace lockstep::bindings
