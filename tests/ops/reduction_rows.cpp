// Reductions over axes, and softmax along any axis.
#include <algorithm>
#include <cmath>

#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/softmax.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

// The elements of x that belong to one output, by output in row-major order.
std::vector<std::vector<double>> collected(const Array& x, const std::vector<int>& axes) {
  std::int64_t outputs = 1;
  for (int i = 0; i < x.shape.rank(); ++i) outputs *= std::ranges::count(axes, i) > 0 ? 1 : x.shape[i];
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(outputs));
  for (std::int64_t e = 0; e < x.shape.elements(); ++e) {
    std::int64_t rest = e, output = 0, stride = 1;
    for (int i = x.shape.rank() - 1; i >= 0; --i) {
      const std::int64_t index = rest % x.shape[i];
      rest /= x.shape[i];
      if (std::ranges::count(axes, i) > 0) continue;
      output += index * stride;
      stride *= x.shape[i];
    }
    groups[static_cast<std::size_t>(output)].push_back(x[e]);
  }
  return groups;
}

using Values = std::vector<double>;

double total_of(const Values& v) {
  double t = 0;
  for (const double x : v) t += x;
  return t;
}
double average(const Values& v) { return total_of(v) / static_cast<double>(v.size()); }
double spread(const Values& v, double correction) {
  double t = 0;
  for (const double x : v) t += (x - average(v)) * (x - average(v));
  return t / (static_cast<double>(v.size()) - correction);
}
double log_total(const Values& v) {
  double t = 0;
  for (const double x : v) t += std::exp(x);
  return std::log(t);
}

using ReductionFunction = std::function<double(const Values&)>;
using Traced = std::function<Value(Value x, Axes axes, bool keep)>;

// `axes` from 0 on and ascending; the op gets them counted from the end if `from_end`.
Row reduction(std::string op, std::string config, Shape shape, std::vector<int> axes, bool keep, const Traced& traced,
              const ReductionFunction& function) {
  const int rank = shape.rank();
  std::vector<int> given = axes;
  if (keep) std::ranges::transform(given, given.begin(), [rank](int axis) { return axis - rank; });
  return {.op = std::move(op),
          .config = std::move(config),
          .operands = {{shape, -2, 2}},
          .trace = [=](auto v) { return traced(v[0], given, keep); },
          .reference =
              [=](auto in) {
                Array y(keep ? kept_shape(shape, axes) : reduced_shape(shape, axes));
                const auto groups = collected(in[0], axes);
                for (std::size_t i = 0; i < groups.size(); ++i) y.values[i] = function(groups[i]);
                return y;
              }};
}

// All patterns of reduced and kept axes, with sizes that do not divide into lanes.
void add_patterns(std::vector<Row>& rows, const std::string& op, const std::string& name, const Traced& traced,
                  const ReductionFunction& function) {
  const auto put = [&](const char* config, Shape shape, std::vector<int> axes, bool keep) {
    rows.push_back(reduction(op, name + "_" + config, std::move(shape), std::move(axes), keep, traced, function));
  };
  put("last", {4, 11}, {1}, false);
  put("first", {5, 3, 2}, {0}, true);
  put("middle", {2, 5, 3}, {1}, false);
  put("outer_and_inner", {3, 2, 7}, {0, 2}, true);
  put("kept_outer_and_inner", {2, 3, 2, 3}, {1, 3}, false);
  put("all", {3, 5}, {0, 1}, true);
  put("size_of_one", {3, 1, 2}, {1}, false);
}

Row softmax_row(std::string config, Shape shape, int axis, bool logarithm) {
  const int at = axis < 0 ? axis + shape.rank() : axis;
  if (logarithm) config.insert(0, "log_");
  return {.op = logarithm ? "logsumexp" : "softmax",
          .config = std::move(config),
          .operands = {{shape, -3, 3}},
          .trace = [=](auto v) { return logarithm ? log_softmax(v[0], axis) : softmax(v[0], axis); },
          .reference =
              [=](auto in) {
                Array y = in[0];
                std::int64_t inner = 1;
                for (int i = at + 1; i < shape.rank(); ++i) inner *= shape[i];
                const std::int64_t n = shape[at];
                for (std::int64_t e = 0; e < shape.elements(); ++e) {
                  const std::int64_t first = e / (n * inner) * n * inner + e % inner;
                  double sum = 0;
                  for (std::int64_t k = 0; k < n; ++k) sum += std::exp(in[0][first + k * inner]);
                  y[e] = logarithm ? in[0][e] - std::log(sum) : std::exp(in[0][e]) / sum;
                }
                return y;
              }};
}

}  // namespace

std::vector<Row> reduction_rows() {
  std::vector<Row> rows;
  add_patterns(
      rows, "sum", "sum", [](Value x, Axes axes, bool keep) { return sum(x, std::move(axes), keep); }, total_of);
  add_patterns(
      rows, "sum", "mean", [](Value x, Axes axes, bool keep) { return mean(x, std::move(axes), keep); }, average);
  add_patterns(
      rows, "amax", "amax", [](Value x, Axes axes, bool keep) { return amax(x, std::move(axes), keep); },
      [](const Values& v) { return std::ranges::max(v); });
  add_patterns(
      rows, "amin", "amin", [](Value x, Axes axes, bool keep) { return amin(x, std::move(axes), keep); },
      [](const Values& v) { return std::ranges::min(v); });
  add_patterns(
      rows, "logsumexp", "logsumexp", [](Value x, Axes axes, bool keep) { return logsumexp(x, std::move(axes), keep); },
      log_total);
  for (const double correction : {0.0, 1.0}) {
    const std::string name = correction == 0 ? "variance" : "sample_variance";
    for (const bool keep : {false, true}) {
      rows.push_back(reduction(
          "sum", name + (keep ? "_inner" : "_outer"), {4, 5}, {keep ? 1 : 0}, keep,
          [=](Value x, Axes axes, bool kept) { return variance(x, std::move(axes), correction, kept); },
          [=](const Values& v) { return spread(v, correction); }));
    }
  }
  for (const bool logarithm : {false, true}) {
    rows.push_back(softmax_row("of_a_vector", {7}, 0, logarithm));
    rows.push_back(softmax_row("last_of_three", {2, 3, 5}, -1, logarithm));
    rows.push_back(softmax_row("middle", {2, 5, 3}, 1, logarithm));
    rows.push_back(softmax_row("first", {4, 3, 2}, -3, logarithm));
  }
  rows.push_back({.op = "expand",
                  .config = "dimensions_of_one",
                  .operands = {{Shape{1, 1}}},
                  .trace =
                      [](auto v) {
                        return apply_op(std::make_shared<ExpandOp>(Shape{2, 3}, 0.5), {v[0]});
                      },
                  .reference =
                      [](auto in) {
                        Array y(Shape{2, 3});
                        for (double& v : y.values) v = 0.5 * in[0][0];
                        return y;
                      }});
  return rows;
}

}  // namespace lockstep::optest
