// The operations that an op applies to its result before it stores the result: first it adds a residual, then it
// applies ReLU. A model writes them as separate ops; fusion in the plan joins them.
#pragma once

namespace lockstep {

struct Epilogue {
  bool residual = false;  // the op adds its last input, which has the type of the result
  bool relu = false;

  const char* str() const {
    return residual && relu ? "+ residual + relu" : residual ? "+ residual" : relu ? "+ relu" : "";
  }
  bool operator==(const Epilogue&) const = default;
};

}  // namespace lockstep
