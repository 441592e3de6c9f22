// Values and parameters with more than one use: their gradients are sums over the uses.
#include <cmath>

#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reshape.h"
#include "tests/ops/row.h"

namespace lockstep::optest {

std::vector<Row> composite_rows() {
  return {
      {.op = "pointwise",
       .config = "value_used_three_times",
       .operands = {{Shape{3, 5}}},
       .trace = [](auto v) { return tanh(v[0]) * sigmoid(v[0]) + v[0]; },
       .reference =
           [](auto in) {
             Array y = in[0];
             for (double& x : y.values) x = std::tanh(x) / (1 + std::exp(-x)) + x;
             return y;
           }},
      {.op = "pointwise",
       .config = "both_operands_the_same",
       .operands = {{Shape{2, 3}}},
       .trace = [](auto v) { return v[0] * v[0] - (v[0] + v[0]); },
       .reference =
           [](auto in) {
             Array y = in[0];
             for (double& x : y.values) x = x * x - 2 * x;
             return y;
           }},
      {.op = "matmul",
       .config = "both_operands_the_same",
       .operands = {{Shape{4, 4}}},
       .trace = [](auto v) { return matmul(v[0], v[0], true, false); },
       .reference = nullptr},
      {.op = "conv2d",
       .config = "module_called_twice",
       .operands = {{Shape{2, 3, 4, 5}}, {Shape{3, 3, 3, 3}, -0.4, 0.4}, {Shape{3}}},
       .trace =
           [](auto v) {
             const Conv2dOptions same{.padding_h = 1, .padding_w = 1};
             return conv2d(tanh(conv2d(v[0], v[1], v[2], same)), v[1], v[2], same);
           },
       .reference = nullptr},
      {.op = "linear",
       .config = "tied_weights",
       .operands = {{Shape{4, 5}}, {Shape{3, 5}}, {Shape{3}}},
       .trace = [](auto v) { return matmul(sigmoid(linear(v[0], v[1], v[2])), v[1]); },
       .reference = nullptr},
      {.op = "conv2d",
       .config = "residual_block",
       .operands = {{Shape{2, 4, 5, 5}}, {Shape{4, 4, 3, 3}, -0.4, 0.4}, {Shape{4}, 0.5, 1.5}, {Shape{4}}},
       .trace =
           [](auto v) {
             const Value y = batch_norm2d(conv2d(v[0], v[1], {}, {.padding_h = 1, .padding_w = 1}), v[2], v[3], 1e-5).y;
             return flatten(global_average_pool2d(tanh(y + v[0])));
           },
       .reference = nullptr},
  };
}

}  // namespace lockstep::optest
