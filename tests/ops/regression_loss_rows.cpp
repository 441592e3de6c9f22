#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/losses/regression.h"
#include "lockstep/ops/pointwise.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

const Shape kRegressionShape{3, 2, 4};

// The weights of the rows below: in[k] per sample, times the mask in[k + 1] (3, 1, 4), which is 0 where the operand is
// negative.
LossWeights weights_at(std::span<const Value> v, std::size_t k) { return {.sample = v[k], .mask = relu(v[k + 1])}; }
double mask_at(std::span<const Array> in, std::size_t k, std::int64_t i) {
  return std::max(in[k + 1][i / 8 * 4 + i % 4], 0.0);
}

// A weighted mean over elements of f(p, t), and the same without weights.
template <class F>
Array mean_of(std::span<const Array> in, std::size_t weights, bool weighted, F f) {
  Array y(Shape{});
  double total = 0;
  for (std::int64_t i = 0; i < kRegressionShape.elements(); ++i) {
    const double w = weighted ? in[weights][i / 8] * mask_at(in, weights, i) : 1;
    y[0] += w * f(i);
    total += w;
  }
  y[0] /= total;
  return y;
}

using LossOf = std::function<Loss(Value, Value, const LossWeights&)>;

void add(std::vector<Row>& rows, const std::string& config, const LossOf& loss, double (*f)(double p, double t)) {
  for (const bool weighted : {false, true}) {
    Row row{
        .op = "pointwise",
        .config = config + (weighted ? "_weighted" : ""),
        .operands = {{kRegressionShape}, {kRegressionShape, -2, 2}},
        .trace = [=](auto v) -> Value { return loss(v[0], v[1], weighted ? weights_at(v, 2) : LossWeights{}); },
        .reference =
            [=](auto in) { return mean_of(in, 2, weighted, [&](std::int64_t i) { return f(in[0][i], in[1][i]); }); },
        .constant = {false, false, true, true}};
    if (weighted) row.operands.insert(row.operands.end(), {{Shape{3}, 0.5, 2}, {Shape{3, 1, 4}}});
    rows.push_back(std::move(row));
  }
}

double huber(double d, double delta) { return std::abs(d) <= delta ? d * d / 2 : delta * (std::abs(d) - delta / 2); }

Array relative_l2_of(std::span<const Array> in, bool weighted) {
  Array y(Shape{});
  double total = 0;
  for (std::int64_t n = 0; n < 3; ++n) {
    double error = 0, size = 0;
    for (std::int64_t i = 8 * n; i < 8 * (n + 1); ++i) {
      const double m = weighted ? mask_at(in, 2, i) : 1;
      error += m * std::pow(in[0][i] - in[1][i], 2);
      size += m * std::pow(in[1][i], 2);
    }
    const double w = weighted ? in[2][n] : 1;
    y[0] += w * std::sqrt(error) / (std::sqrt(size) + 1e-8);
    total += w;
  }
  y[0] /= total;
  return y;
}

Row relative_l2_row(bool weighted) {
  Row row{.op = "sum",
          .config = weighted ? "relative_l2_weighted" : "relative_l2",
          .operands = {{kRegressionShape}, {kRegressionShape, -2, 2}},
          .trace = [=](auto v) -> Value {
            return relative_l2_loss(v[0], v[1], {}, weighted ? weights_at(v, 2) : LossWeights{});
          },
          .reference = [=](auto in) { return relative_l2_of(in, weighted); },
          .constant = {false, false, true, true}};
  if (weighted) row.operands.insert(row.operands.end(), {{Shape{3}, 0.5, 2}, {Shape{3, 1, 4}}});
  return row;
}

Row gaussian_row(std::string config, Shape variance, GaussianNllOptions options) {
  const std::int64_t rows = variance == kRegressionShape ? 1 : 4;  // (3, 2, 1): one variance for four elements
  return {.op = "pointwise",
          .config = std::move(config),
          .operands =
              {{kRegressionShape}, {kRegressionShape, -2, 2}, {variance, 0.3, 2}, {Shape{3}, 0.5, 2}, {Shape{3, 1, 4}}},
          .trace = [=](auto v) -> Value { return gaussian_nll_loss(v[0], v[1], v[2], options, weights_at(v, 3)); },
          .reference =
              [=](auto in) {
                return mean_of(in, 3, true, [&](std::int64_t i) {
                  const double v = in[2][i / rows], constant = options.full ? std::log(2 * std::numbers::pi) : 0;
                  return (std::log(v) + std::pow(in[0][i] - in[1][i], 2) / v + constant) / 2;
                });
              },
          .constant = {false, false, false, true, true}};
}

}  // namespace

std::vector<Row> regression_loss_rows() {
  std::vector<Row> rows{relative_l2_row(false), relative_l2_row(true),
                        gaussian_row("gaussian_nll", kRegressionShape, {}),
                        gaussian_row("gaussian_nll_full", {3, 2, 1}, {.full = true})};
  add(
      rows, "l1_loss", [](Value p, Value t, const LossWeights& w) { return l1_loss(p, t, w); },
      [](double p, double t) { return std::abs(p - t); });
  add(
      rows, "mean_squared_error", [](Value p, Value t, const LossWeights& w) { return mean_squared_error(p, t, w); },
      [](double p, double t) { return (p - t) * (p - t); });
  add(
      rows, "huber_loss", [](Value p, Value t, const LossWeights& w) { return huber_loss(p, t, {.delta = 0.7}, w); },
      [](double p, double t) { return huber(p - t, 0.7); });
  add(
      rows, "smooth_l1_loss",
      [](Value p, Value t, const LossWeights& w) { return smooth_l1_loss(p, t, {.beta = 0.5}, w); },
      [](double p, double t) { return huber(p - t, 0.5) / 0.5; });
  add(
      rows, "smooth_l1_loss_without_beta",
      [](Value p, Value t, const LossWeights& w) { return smooth_l1_loss(p, t, {.beta = 0}, w); },
      [](double p, double t) { return std::abs(p - t); });
  return rows;
}

}  // namespace lockstep::optest
