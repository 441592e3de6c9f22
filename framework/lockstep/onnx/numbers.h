// Lists of whole numbers as ONNX has them: sizes, axes, pads.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::onnx {

using Numbers = std::vector<std::int64_t>;

}  // namespace lockstep::onnx
