// Every op against plain loops (values, f32 and f64) and against central differences (gradients, f64). Adding an op is
// adding a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/ops/derivatives.h"
#include "lockstep/ops/gradient.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "tests/ops/checks.h"

namespace lockstep::optest {

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (const auto part :
       {convolution_rows, pooling_rows, spatial_rows, normalisation_rows, product_rows, elementwise_rows, loss_rows,
        regression_loss_rows, classification_loss_rows, shape_rows, index_rows, composite_rows, reduction_rows,
        row_norm_rows, stack_rows, recurrent_rows, fourier_rows, attention_rows}) {
    std::ranges::move(part(), std::back_inserter(rows));
  }
  return rows;
}

namespace {

std::vector<Row> rows_with_reference() {  // all but compositions of ops that have rows of their own
  std::vector<Row> rows = all_rows();
  std::erase_if(rows, [](const Row& row) { return !row.reference; });
  return rows;
}

std::string name_of_row(const ::testing::TestParamInfo<Row>& row) { return row.param.op + "_" + row.param.config; }

class OpTable : public ::testing::TestWithParam<Row> {};
class OpValues : public ::testing::TestWithParam<Row> {};

double largest(const Array& a) {
  double m = 0;
  for (double v : a.values) m = std::max(m, std::abs(v));
  return m;
}

void expect_near(const Array& got, const Array& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.shape, want.shape) << what << ": " << got.shape.str() << " and " << want.shape.str();
  const double bound = tolerance * std::max(1.0, largest(want));
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    ASSERT_NEAR(got.values[i], want.values[i], bound) << what << ", element " << i << " of " << want.shape.str();
  }
}

TEST_P(OpValues, AreThoseOfPlainLoops) {
  for (const DType dtype : {DType::F64, DType::F32}) {
    RowModel model(GetParam(), dtype);
    model.run();
    const Array want = GetParam().reference(model.operands());
    expect_near(model.output(), want, dtype == DType::F64 ? 1e-12 : 5e-6, std::string(name_of(dtype)));
  }
}

TEST_P(OpTable, GradientsAreCentralDifferences) {
  RowModel model(GetParam(), DType::F64);
  model.run();
  std::vector<Array> gradients;
  for (std::size_t k = 0; k < model.operands().size(); ++k) {
    gradients.push_back(model.differentiated(k) ? model.gradient(k) : Array(Shape{}));
  }
  constexpr double h = 1e-5;  // error h^2 f''' / 6 + 1e-16 |loss| / h: about 1e-10 for losses and derivatives near 1
  for (std::size_t k = 0; k < model.operands().size(); ++k) {
    if (!model.differentiated(k)) continue;
    const Array original = model.operands()[k];
    Array moved = original, differences(original.shape);
    const auto loss_at = [&](std::size_t i, double value) {
      moved.values[i] = value;
      model.write(k, moved);
      model.run();
      return model.loss();
    };
    for (std::size_t i = 0; i < original.values.size(); ++i) {
      const double above = loss_at(i, original.values[i] + h), below = loss_at(i, original.values[i] - h);
      differences.values[i] = (above - below) / (2 * h);
      moved.values[i] = original.values[i];
    }
    model.write(k, original);
    expect_near(gradients[k], differences, 2e-8, "operand " + std::to_string(k));
  }
}

// f32 kernels are others, in other layouts: they must agree with the f64 ones that central differences vouch for.
TEST_P(OpTable, GradientsInF32AreThoseInF64) {
  RowModel wide(GetParam(), DType::F64), narrow(GetParam(), DType::F32);
  wide.run();
  narrow.run();
  for (std::size_t k = 0; k < wide.operands().size(); ++k) {
    if (wide.differentiated(k)) expect_near(narrow.gradient(k), wide.gradient(k), 2e-5, "operand " + std::to_string(k));
  }
}

TEST_P(OpTable, RowsHoldTheOpTheyAreNamedAfter) {
  const std::vector<std::string> ops = RowModel(GetParam(), DType::F64).ops();
  EXPECT_NE(std::ranges::find(ops, GetParam().op), ops.end()) << GetParam().op;
}

INSTANTIATE_TEST_SUITE_P(Rows, OpTable, ::testing::ValuesIn(all_rows()), name_of_row);
INSTANTIATE_TEST_SUITE_P(Rows, OpValues, ::testing::ValuesIn(rows_with_reference()), name_of_row);

// Ops that appear in no forward graph that is differentiated, each with its reason.
const std::set<std::string> kExempt{
    "batch_norm2d_gradient", "batch_norm2d_gradient_sums", "batch_norm2d_gradient_apply",
    "batch_norm2d_moments",  // of batch_norm2d_sync, whose rows hold it
    "batch_norm2d_inference_gradient", "conv1d_backward_weights", "conv2d_backward_weights",
    "conv3d_backward_weights",  // gradients
    "average_pool1d_gradient", "average_pool2d_gradient", "average_pool3d_gradient", "max_pool1d_gradient",
    "max_pool2d_gradient", "max_pool3d_gradient", "cross_entropy_gradient", "group_norm_gradient",
    "layer_norm_gradient", "rms_norm_gradient", "lstm_gradient", "gru_gradient", "attention_gradient",
    "vocabulary_cross_entropy_gradient", "pair_products_gradient",
    "softmax_gradient",        // themselves
    "channel_sum",             // the gradient of a bias
    "fill",                    // a constant
    "reorder",                 // the plan's own
    "cast",                    // f32 and bf16: tests/plan/test_passes.cpp
    "batch_norm2d_normalise",  // made by recomputation: tests/plan/test_passes.cpp
    // Made by the plan where readers normalise for themselves: tests/plan/test_norm_fusion.cpp
    "batch_norm2d_statistics", "batch_norm2d_sum", "batch_norm2d_sum_normalise", "conv2d_of_norm",
    "conv2d_of_norm_backward_weights",
    "fold_batch_norm",  // made by fusion: tests/plan/test_passes.cpp
    "linear_backward_data", "linear_backward_weights", "count_correct",
    "class_counts",  // integers
    "pad_gradient", "index_add", "embedding_gradient",
    "scatter_add",   // gradients, too
    "to_floating",   // of integers: the row where_label of pointwise
    "one_hot",       // of integers: tests/losses/test_losses.cpp
    "write_rows",    // caches have no gradient: tests/nn/test_attention.cpp
    "normal_noise",  // of no floating operand: tests/kernels/test_elementwise.cpp
    "bag_gradient",
    "bag_max_gradient",  // gradients, too
    "table", "table_lookup",
    "table_gradient",  // of a store that is no operand: tests/mpi/test_tables.cpp
};

TEST(OpTableItself, HasARowForEveryOpThatHasAKernel) {
  kernels::KernelRegistry built_in;
  kernels::register_generic_kernels(built_in);
  kernels::register_onednn_kernels(built_in);
  kernels::register_native_kernels(built_in);
  std::set<std::string> rows;
  for (const Row& row : all_rows()) rows.insert(row.op);
  const std::vector<std::string> ops = built_in.ops();
  for (const std::string& op : ops) {
    EXPECT_NE(rows.contains(op), kExempt.contains(op)) << op << " needs a row, or a reason to have none, not both";
  }
  for (const std::string& op : kExempt) EXPECT_TRUE(std::ranges::binary_search(ops, op)) << op << " has no kernel";
}

// |gradient of a row's functional|^2 by all operands: its gradients need every second derivative.
Row penalised(const Row& row) {
  Row penalty = row;
  penalty.config += "_again";
  penalty.reference = nullptr;
  penalty.trace = [row](std::span<const Value> operands) {
    const Value y = row.trace(operands);
    std::vector<Value> by;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (k >= row.constant.size() || !row.constant[k]) by.push_back(operands[k]);
    }
    Value total;
    for (const Value g : gradients(sum(square(y) + y), by)) total = total ? total + sum(square(g)) : sum(square(g));
    return total;
  };
  return penalty;
}

Derivatives derivatives_of(std::string_view op) {
  for (const OpDerivatives& row : op_derivatives()) {
    if (row.op == op) return row.derivatives;
  }
  ADD_FAILURE() << op << " has no row in ops/derivatives.cpp";
  return Derivatives::None;
}

bool can_be_differentiated_again(const Row& row) {
  static const std::set<std::string> once{"attention", "bag_max", "cross_entropy",
                                          "gru",       "lstm",    "vocabulary_cross_entropy"};
  const bool has_norm = row.op.starts_with("batch_norm2d") || row.config == "residual_block";
  return !has_norm && !row.op.starts_with("max_pool") && !once.contains(row.op);
}

std::vector<Row> rows_to_differentiate_again() {
  std::vector<Row> rows;
  for (const Row& row : all_rows()) {
    if (can_be_differentiated_again(row)) rows.push_back(penalised(row));
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Again, OpTable, ::testing::ValuesIn(rows_to_differentiate_again()), name_of_row);

TEST(OpTableItself, SaysHowOftenOpsCanBeDifferentiated) {
  EXPECT_TRUE(std::ranges::is_sorted(op_derivatives(), {}, &OpDerivatives::op));
  for (const Row& row : all_rows()) {
    SCOPED_TRACE(row.op + " " + row.config);
    if (can_be_differentiated_again(row)) {
      EXPECT_EQ(derivatives_of(row.op), Derivatives::Any);
    } else {
      EXPECT_TRUE(derivatives_of(row.op) == Derivatives::First || row.config == "residual_block");
      EXPECT_THROW(RowModel(penalised(row), DType::F64), Error);
    }
  }
}

TEST(OpTableItself, HasARowOfDerivativesForEveryOpThatHasAKernel) {
  kernels::KernelRegistry built_in;
  kernels::register_generic_kernels(built_in);
  kernels::register_onednn_kernels(built_in);
  kernels::register_native_kernels(built_in);
  for (const std::string& op : built_in.ops()) derivatives_of(op);
}

}  // namespace
}  // namespace lockstep::optest
