// What an op does to its result before storing it: first adds a residual, then applies ReLU. Models write these as ops
// of their own; the plan's fusion puts them here.
#pragma once

namespace lockstep {

struct Epilogue {
  bool residual = false;  // a last input of the result's type is added
  bool relu = false;

  const char* str() const {
    return residual && relu ? "+ residual + relu" : residual ? "+ residual" : relu ? "+ relu" : "";
  }
  bool operator==(const Epilogue&) const = default;
};

}  // namespace lockstep
