// The type of a value, known before anything runs: its logical shape and its element type.
#pragma once

#include "lockstep/core/dtype.h"
#include "lockstep/core/shape.h"

namespace lockstep {

struct Type {
  Shape shape;
  DType dtype = DType::F32;
  std::string str() const { return std::string(name_of(dtype)) + shape.str(); }
  bool operator==(const Type&) const = default;
};

}  // namespace lockstep
