// Enlarges, shrinks or pads x (N, C, spatial sizes) along one to three spatial axes: one linear map per axis, each
// output element a sum over the taps of its axes. Enlarging by nearest or linear interpolation and adaptive average
// pooling are such maps. The gradient is the same op with transposed maps, so it can be differentiated any number of
// times.
#pragma once

#include <string>

#include "lockstep/graph/graph.h"
#include "lockstep/ops/axis_map.h"

namespace lockstep {

class ResampleOp : public Op {
 public:
  // One map per spatial axis, the outermost first; `what` describes them in printed plans and in the keys of
  // autotuning. Throws Error for no map, or more than three.
  ResampleOp(std::vector<AxisMap> maps, std::string what);
  const std::vector<AxisMap>& maps() const { return maps_; }
  std::string_view name() const override { return "resample"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override { return what_; }

 private:
  std::vector<AxisMap> maps_;
  std::string what_;
};

enum class Interpolation : std::uint8_t {
  Nearest,
  Linear,  // bilinear with two axes, trilinear with three
};

// Either the sizes of the result or the factors by which it is larger: one number per spatial axis, or one for all.
struct UpsampleOptions {
  std::vector<std::int64_t> size = {};
  std::vector<double> scale = {};
  Interpolation mode = Interpolation::Nearest;
  bool align_corners = false;  // Linear: the first and the last elements of input and output lie on each other
};

// Returns x enlarged, or shrunk, as PyTorch's interpolate does: a size that follows from a factor is rounded down, but
// positions are computed with the factor as given. Throws Error where the options do not fit x.
Value upsample(Value x, UpsampleOptions options);

// Returns means over `size` windows per axis (one number per spatial axis, or one for all) that cover the axis evenly,
// as PyTorch's adaptive average pooling: window i of n over m elements is [floor(i m / n), ceil((i + 1) m / n)). A
// pooling op does it where all windows of an axis are equal. Throws Error where the sizes do not fit x.
Value adaptive_average_pool(Value x, std::vector<std::int64_t> size);

enum class PaddingMode : std::uint8_t { Zeros, Reflect, Replicate, Circular };

// Returns x with `padding` more elements at both ends of each spatial axis: zeros; the image mirrored at its edge
// elements, which are not repeated; the edge elements; or the image's other end. Throws Error where the padding is
// negative, or larger than the mode allows: the image for Circular, less than that for Reflect.
Value pad_spatial(Value x, const std::vector<std::int64_t>& padding, PaddingMode mode);

}  // namespace lockstep
