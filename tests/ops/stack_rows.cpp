// Products of stacks of matrices, and linear layers over any leading dimensions.
#include "lockstep/ops/linear.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

// The offset of the matrix of `operand` that belongs to number `index` of a stack, by NumPy's rules.
std::int64_t matrix_at(const Shape& operand, const Shape& stack, std::int64_t index) {
  std::int64_t offset = 0, stride = operand[operand.rank() - 1] * operand[operand.rank() - 2];
  for (int i = stack.rank() - 1, d = operand.rank() - 3; d >= 0; --i, --d) {
    offset += index % stack[i] % operand[d] * stride;
    stride *= operand[d];
    index /= stack[i];
  }
  return offset;
}

Array stacked_product(const Array& a, const Array& b, const Shape& stack, bool transpose_a, bool transpose_b) {
  const std::int64_t rows_a = a.shape[a.shape.rank() - 2], columns_a = a.shape[a.shape.rank() - 1];
  const std::int64_t rows_b = b.shape[b.shape.rank() - 2], columns_b = b.shape[b.shape.rank() - 1];
  const std::int64_t m = transpose_a ? columns_a : rows_a, k = transpose_a ? rows_a : columns_a,
                     n = transpose_b ? rows_b : columns_b;
  std::vector<std::int64_t> dims = stack.dims();
  dims.insert(dims.end(), {m, n});
  Array y{Shape(dims)};
  for (std::int64_t s = 0; s < stack.elements(); ++s) {
    const std::int64_t at_a = matrix_at(a.shape, stack, s), at_b = matrix_at(b.shape, stack, s);
    for (std::int64_t i = 0; i < m * n; ++i) {
      for (std::int64_t l = 0; l < k; ++l)
        y[s * m * n + i] += a[at_a + (transpose_a ? l * columns_a + i / n : i / n * columns_a + l)] *
                            b[at_b + (transpose_b ? i % n * columns_b + l : l * columns_b + i % n)];
    }
  }
  return y;
}

struct Transposed {
  bool a = false, b = false;
};

Row product(std::string config, Shape a, Shape b, const Shape& stack, Transposed t = {}) {
  return {.op = "matmul",
          .config = std::move(config),
          .operands = {{std::move(a)}, {std::move(b)}},
          .trace = [=](auto v) { return matmul(v[0], v[1], t.a, t.b); },
          .reference = [=](auto in) { return stacked_product(in[0], in[1], stack, t.a, t.b); }};
}

Row layer(std::string config, Shape x, std::int64_t out, bool bias) {
  const std::int64_t in = x[x.rank() - 1];
  std::vector<Operand> operands{{x}, {Shape{out, in}}};
  if (bias) operands.push_back({Shape{out}});
  return {.op = "linear",
          .config = std::move(config),
          .operands = std::move(operands),
          .trace = [=](auto v) { return linear(v[0], v[1], bias ? v[2] : Value()); },
          .reference =
              [=](auto v) {
                Shape shape = x;
                shape[x.rank() - 1] = out;
                Array y(shape);
                for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
                  if (bias) y[i] = v[2][i % out];
                  for (std::int64_t l = 0; l < in; ++l) y[i] += v[0][i / out * in + l] * v[1].at(i % out, l);
                }
                return y;
              }};
}

}  // namespace

std::vector<Row> stack_rows() {
  return {
      product("stack", {3, 2, 4}, {3, 4, 5}, {3}),
      product("two_leading_dimensions", {2, 3, 2, 4}, {2, 3, 4, 1}, {2, 3}),
      product("one_matrix_on_the_right", {2, 3, 2, 4}, {4, 3}, {2, 3}),
      product("one_matrix_on_the_left", {2, 4}, {3, 4, 3}, {3}),
      product("broadcast_both", {2, 1, 2, 3}, {4, 3, 2}, {2, 4}),
      product("transposed_left", {3, 4, 2}, {3, 4, 5}, {3}, {.a = true}),
      product("transposed_right", {3, 2, 4}, {3, 5, 4}, {3}, {.b = true}),
      product("both_transposed", {2, 4, 2}, {2, 5, 4}, {2}, {.a = true, .b = true}),
      product("one_transposed_matrix_on_the_right", {3, 2, 4}, {5, 4}, {3}, {.b = true}),
      product("one_matrix_for_transposed_ones", {3, 4, 2}, {4, 5}, {3}, {.a = true}),
      layer("three_dimensions", {2, 3, 4}, 5, true),
      layer("four_dimensions", {2, 1, 3, 4}, 2, false),
      layer("one_dimension", {4}, 3, true),
  };
}

}  // namespace lockstep::optest
