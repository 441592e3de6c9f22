// A linear map along one axis, as a sparse matrix: output i is the sum of weight * input over the taps of i. Enlarging,
// shrinking and padding of images are such maps, one per spatial axis; a transposed map is the gradient. Values; any
// thread may make them.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

class AxisMap {
 public:
  struct Tap {
    std::int64_t from;
    double weight;
    bool operator==(const Tap&) const = default;
  };

  // `taps` has an element for each output, with inputs in [0, in). Throws Error for an input outside.
  AxisMap(std::int64_t in, std::vector<std::vector<Tap>> taps);
  std::int64_t in() const { return in_; }
  std::int64_t out() const { return static_cast<std::int64_t>(taps_.size()); }
  const std::vector<std::vector<Tap>>& taps() const { return taps_; }
  // Input and output change places; the taps of an output are in the order of their inputs.
  AxisMap transposed() const;
  bool operator==(const AxisMap&) const = default;

  static AxisMap identity(std::int64_t size);
  // Output i is input floor(i * step), at most the last one; step is 1 / `scale`, or in / out without one (0).
  static AxisMap nearest(std::int64_t in, std::int64_t out, double scale = 0);
  // Output i is interpolated between the two inputs beside i * (in - 1) / (out - 1) where corners are aligned, else
  // beside max(0, (i + 1/2) * step - 1/2), with the step as above.
  static AxisMap linear(std::int64_t in, std::int64_t out, bool align_corners, double scale = 0);
  // Output i is the mean of the inputs from floor(i * in / out) to ceil((i + 1) * in / out), without the last one.
  static AxisMap area(std::int64_t in, std::int64_t out);

 private:
  std::int64_t in_;
  std::vector<std::vector<Tap>> taps_;  // by output
};

}  // namespace lockstep
