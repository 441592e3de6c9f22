// Sums, means, greatest and least elements over dimensions.
#include "lockstep/onnx/import/node_reader.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"

namespace lockstep::onnx {
namespace {

Value sum_of_squares(Value x, const Axes& axes, bool keep) { return sum(square(x), axes, keep); }
Value root_of_squares(Value x, const Axes& axes, bool keep) { return sqrt(sum(square(x), axes, keep)); }
Value sum_of_magnitudes(Value x, const Axes& axes, bool keep) { return sum(abs(x), axes, keep); }

// Without dimensions over all of them, unless the node says that it then does nothing.
template <Value (*reduce)(Value, const Axes&, bool)>
void read_reduction(const NodeReader& r) {
  const Numbers numbers = r.wholes_of(1, "axes");
  if (numbers.empty() && r.whole_attribute("noop_with_empty_axes", 0) != 0) {
    r.set(r.value(0));
    return;
  }
  r.set(reduce(r.value(0), Axes(std::vector<int>(numbers.begin(), numbers.end())),
               r.whole_attribute("keepdims", 1) != 0));
}

}  // namespace

std::span<const Reading> reduction_readings() {
  static const std::vector<std::string_view> attributes{"axes", "keepdims", "noop_with_empty_axes"};
  static const std::vector<Reading> readings{
      {"ReduceSum", read_reduction<sum>, attributes},
      {"ReduceMean", read_reduction<mean>, attributes},
      {"ReduceMax", read_reduction<amax>, attributes},
      {"ReduceMin", read_reduction<amin>, attributes},
      {"ReduceLogSumExp", read_reduction<logsumexp>, attributes},
      {"ReduceSumSquare", read_reduction<sum_of_squares>, attributes},
      {"ReduceL2", read_reduction<root_of_squares>, attributes},
      {"ReduceL1", read_reduction<sum_of_magnitudes>, attributes},
  };
  return readings;
}

}  // namespace lockstep::onnx
