#include "lockstep/ops/linear.h"
#include "lockstep/ops/pair_products.h"
#include "lockstep/ops/reduce.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

Array product(const Array& a, const Array& b, bool transpose_a, bool transpose_b) {
  const std::int64_t m = a.shape[transpose_a ? 1 : 0], k = a.shape[transpose_a ? 0 : 1],
                     n = b.shape[transpose_b ? 0 : 1];
  Array y(Shape{m, n});
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t l = 0; l < k; ++l)
        y.at(i, j) += (transpose_a ? a.at(l, i) : a.at(i, l)) * (transpose_b ? b.at(j, l) : b.at(l, j));
    }
  }
  return y;
}

Row matmul_row(bool transpose_a, bool transpose_b) {
  const std::int64_t m = 5, k = 3, n = 7;
  return {.op = "matmul",
          .config =
              std::string(transpose_a ? "transposed" : "straight") + "_by_" + (transpose_b ? "transposed" : "straight"),
          .operands = {{transpose_a ? Shape{k, m} : Shape{m, k}}, {transpose_b ? Shape{n, k} : Shape{k, n}}},
          .trace = [=](auto v) { return matmul(v[0], v[1], transpose_a, transpose_b); },
          .reference = [=](auto in) { return product(in[0], in[1], transpose_a, transpose_b); }};
}

Row linear_row(std::string config, std::int64_t samples, std::int64_t in, std::int64_t out, bool bias) {
  std::vector<Operand> operands{{Shape{samples, in}}, {Shape{out, in}}};
  if (bias) operands.push_back({Shape{out}});
  return {.op = "linear",
          .config = std::move(config),
          .operands = std::move(operands),
          .trace = [=](auto v) { return linear(v[0], v[1], bias ? v[2] : Value()); },
          .reference =
              [=](auto v) {
                Array y = product(v[0], v[1], false, true);
                for (std::int64_t i = 0; bias && i < y.shape.elements(); ++i) y[i] += v[2][i % out];
                return y;
              }};
}

// Also more vectors, and longer ones, than fit into a panel of the native kernels.
Row pairs_row(std::string config, const Shape& x) {
  return {.op = "pair_products",
          .config = std::move(config),
          .operands = {{x}},
          .trace = [](auto v) { return pair_products(v[0]); },
          .reference =
              [x](auto in) {
                Array y(Shape{x[0], x[1] * (x[1] - 1) / 2});
                std::int64_t at = 0;
                for (std::int64_t n = 0; n < x[0]; ++n) {
                  for (std::int64_t i = 1; i < x[1]; ++i) {
                    for (std::int64_t j = 0; j < i; ++j, ++at) {
                      for (std::int64_t e = 0; e < x[2]; ++e)
                        y[at] += in[0][(n * x[1] + i) * x[2] + e] * in[0][(n * x[1] + j) * x[2] + e];
                    }
                  }
                }
                return y;
              }};
}

}  // namespace

std::vector<Row> product_rows() {
  return {matmul_row(false, false),
          matmul_row(false, true),
          matmul_row(true, false),
          matmul_row(true, true),
          linear_row("bias", 5, 7, 3, true),
          linear_row("no_bias", 3, 5, 9, false),
          linear_row("one_sample", 1, 17, 16, true),
          linear_row("one_feature", 4, 1, 1, true),
          pairs_row("small", {3, 4, 5}),
          pairs_row("many_vectors", {2, 34, 2}),
          pairs_row("long_vectors", {2, 3, 35})};
}

}  // namespace lockstep::optest
