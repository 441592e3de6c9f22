// The texts of the three files around the statements of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/core/shape.h"

namespace lockstep::onnx {

struct CInput {
  std::string name;       // of the file
  Shape sample;           // its shape
  bool is_whole = false;  // int32_t, ids of rows
};

struct CParts {
  DType dtype = DType::F32;
  std::vector<CInput> inputs;
  Shape output;                // of one sample
  std::string body;            // statements that compute one sample
  std::string once;            // statements that depend on the weights alone
  std::string tables;          // constants that they read
  std::string helpers;         // functions that they call
  std::vector<double> values;  // the weights, in their order
  std::string structure;       // what other weights of the same network have alike, and those of another one have not
  std::int64_t arena = 0;      // bytes, of values of a sample
  std::int64_t fixed = 0;      // bytes, of values of all samples
  std::int64_t scratch = 0;    // reals
};

std::string c_text(const CParts& parts, const std::string& name);
std::string c_header(const CParts& parts, const std::string& name);
// The bytes of the file of weights: a mark, a number for the structure, how many there are, their checksum, the
// weights.
std::string c_weights(const CParts& parts);

}  // namespace lockstep::onnx
