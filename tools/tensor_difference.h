// Where two sets of named tensors differ, bit by bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"

namespace lockstep::tools {

struct ElementDifference {
  std::vector<std::int64_t> index;          // logical
  std::string left, right;                  // the values, with all their digits
  std::optional<std::uint64_t> steps = {};  // representable values between them, plus one; 0 for 0 and -0; none for NaN
};

struct TensorDifference {
  std::string name;
  std::string what = {};         // why elements cannot be compared: missing, or of another shape or type
  std::int64_t elements = 0;     // that differ
  std::int64_t of = 0;           // all
  ElementDifference first = {};  // in logical order
  double largest = 0;            // absolute difference, among those that are numbers
};

// In the order of `left`, then tensors that only `right` has.
std::vector<TensorDifference> tensor_differences(const std::vector<io::NamedTensor>& left,
                                                 const std::vector<io::NamedTensor>& right);

}  // namespace lockstep::tools
