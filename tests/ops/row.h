// A row of the gradient-check table: an op in one configuration, what it reads, and what its values must be.
#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "lockstep/graph/graph.h"
#include "tests/ops/array.h"

namespace lockstep::optest {

// Elements are distinct and evenly spaced within [low, high), in random order, and none is zero: finite differences
// meet no kink of relu, abs or a maximum.
struct Operand {
  Shape shape;
  double low = -1, high = 1;
};

struct Row {
  std::string op;                 // the name its kernels are registered under
  std::string config;             // tells rows of one op apart
  std::vector<Operand> operands;  // differentiated all, inputs and weights alike
  // Traces the op; one gradient is checked per operand.
  std::function<Value(std::span<const Value> operands)> trace;
  // The same in plain loops; null for compositions of ops that have rows of their own.
  std::function<Array(std::span<const Array> operands)> reference;
  std::vector<std::int32_t> targets = {};  // class indices, as the graph's input "target"
  std::vector<bool> constant = {};         // operands that the op treats as constants: no gradient is checked
};

inline void PrintTo(const Row& row, std::ostream* out) { *out << row.op << '_' << row.config; }

std::vector<Row> convolution_rows();
std::vector<Row> pooling_rows();
std::vector<Row> normalisation_rows();
std::vector<Row> product_rows();
std::vector<Row> elementwise_rows();
std::vector<Row> shape_rows();
std::vector<Row> index_rows();
std::vector<Row> loss_rows();
std::vector<Row> spatial_rows();
std::vector<Row> recurrent_rows();
std::vector<Row> fourier_rows();
std::vector<Row> regression_loss_rows();
std::vector<Row> classification_loss_rows();
std::vector<Row> composite_rows();
std::vector<Row> reduction_rows();
std::vector<Row> row_norm_rows();
std::vector<Row> stack_rows();
std::vector<Row> attention_rows();
std::vector<Row> all_rows();

}  // namespace lockstep::optest
