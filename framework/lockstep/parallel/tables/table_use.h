// A lookup in a table by ids that are known before the passes of a step. A value.
#pragma once

#include <cstdint>

#include "lockstep/core/dtype.h"
#include "lockstep/graph/table.h"

namespace lockstep::parallel {

struct TableUse {
  const Table* table = nullptr;
  const void* ids = nullptr;  // of another object
  DType dtype = DType::I32;   // I32 or I64
  std::int64_t count = 0;
};

}  // namespace lockstep::parallel
