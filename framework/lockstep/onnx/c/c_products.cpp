// Linear layers, products of matrices, rows of tables, and recurrent layers.
#include <algorithm>

#include "lockstep/core/format.h"
#include "lockstep/onnx/c/c_writer.h"
#include "lockstep/onnx/numbers.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/recurrent.h"

namespace lockstep::onnx {
namespace {

void write_linear(const CNode& n, const LinearOp& op) {
  n.require(!op.relu(), "an epilogue");
  const Shape &x = n.types[0].shape, &weight = n.types[1].shape;
  n.body.call("linear",
              formatted("{}, {}, {}, {}, {}, {}, {}", n.outputs[0], n.inputs[0], n.inputs[1],
                        n.inputs.size() > 2 ? n.inputs[2] : "NULL", x.elements() / weight[1], weight[0], weight[1]));
}

// The first element of each matrix of a stack whose leading dimensions broadcast to those of the result.
Numbers matrices_of(const Shape& stack, const Shape& result) {
  Numbers at{0};
  const int leading = result.rank() - 2;
  const Numbers strides = dense_strides(stack);
  for (int axis = 0; axis < leading; ++axis) {
    const int own = axis - (result.rank() - stack.rank());
    Numbers next;
    for (const std::int64_t base : at) {
      for (std::int64_t i = 0; i < result[axis]; ++i)
        next.push_back(own < 0 || stack[own] == 1 ? base : base + i * strides[static_cast<std::size_t>(own)]);
    }
    at = std::move(next);
  }
  return at;
}

void write_matmul(const CNode& n, const MatmulOp& op) {
  const Shape &a = n.types[0].shape, &b = n.types[1].shape, y = n.shape();
  const std::int64_t rows = y[y.rank() - 2], columns = y[y.rank() - 1],
                     inner = a[a.rank() - (op.transpose_a() ? 2 : 1)];
  const Numbers first_a = matrices_of(a, y), first_b = matrices_of(b, y);
  const auto count = static_cast<std::int64_t>(first_a.size());
  const auto product = [&](const std::string& to, const std::string& left, const std::string& right) {
    return formatted("multiply({}, {}, {}, {}, {}, {}, {}, {});", to, left, right, rows, columns, inner,
                     op.transpose_a() ? 1 : 0, op.transpose_b() ? 1 : 0);
  };
  n.body.need("multiply");
  if (count == 1) {
    n.body.add(product(n.outputs[0], n.inputs[0], n.inputs[1]));
    return;
  }
  const std::string table_a = n.body.table(first_a), table_b = n.body.table(first_b);
  n.body.add(formatted("for (i = 0; i < {}; ++i)", count));
  n.body.add("  " + product(formatted("{} + i * {}", n.outputs[0], rows * columns),
                            formatted("{} + {}[i]", n.inputs[0], table_a),
                            formatted("{} + {}[i]", n.inputs[1], table_b)));
}

void take_rows(const CNode& n, const std::string& table, const std::string& ids, const Numbers& sizes) {
  n.require(n.body.is_of_sample(), "numbers of rows that are no input");
  n.body.need("take_rows");
  n.body.add(formatted("if (!take_rows({}, {}, {}, {})) return 0;", n.outputs[0], table, ids, c_list(sizes)));
}

void write_embedding(const CNode& n, const EmbeddingOp& op) {
  n.require(!op.masks(), "a masked embedding");
  const Shape& table = n.types[0].shape;
  take_rows(n, n.inputs[0], n.inputs[1], {1, n.types[1].shape.elements(), table[0], table[1]});
}

void write_index_select(const CNode& n, const IndexSelectOp& op) {
  const Shape& x = n.types[0].shape;
  std::int64_t outer = 1, inner = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis < op.axis()) outer *= x[axis];
    if (axis > op.axis()) inner *= x[axis];
  }
  take_rows(n, n.inputs[0], n.inputs[1], {outer, n.types[1].shape.elements(), x[op.axis()], inner});
}

// One sample: states are lists of hidden numbers, those of the second direction behind those of the first.
void write_c_recurrent(const CNode& n, const RecurrentOp& op) {
  const RecurrentOptions& options = op.options();
  n.require(n.types[0].shape[1] == 1, "several sequences in one sample");
  const std::int64_t steps = n.shape()[0], width = n.shape()[2], hidden = width / options.directions;
  const std::size_t each = options.bias ? 3 : 2, given = each * static_cast<std::size_t>(options.directions);
  n.body.scratch(4 * hidden + 2 * width);
  const std::vector<std::string> own{formatted("scratch + {}", 4 * hidden),
                                     formatted("scratch + {}", 4 * hidden + width)};
  for (std::size_t state = 0; state < (options.lstm() ? 2U : 1U); ++state) {
    const std::string bytes = formatted("{} * sizeof(real)", width);
    n.body.add(options.initial ? formatted("memcpy({}, {}, {});", own[state], n.inputs[given + state], bytes)
                               : formatted("memset({}, 0, {});", own[state], bytes));
  }
  for (int d = 0; d < options.directions; ++d) {
    const std::size_t at = each * static_cast<std::size_t>(d);
    const std::int64_t from = d * hidden;
    const std::string y = formatted("{} + {}, {}, {} + {}", n.outputs[0], from, width, own[0], from);
    if (options.lstm()) {
      n.body.call("lstm", formatted("{}, {} + {}, {}, {}, scratch, {}, {}, {}", y, own[1], from, n.inputs[at],
                                    n.inputs[at + 1], steps, hidden, d));
    } else {
      n.body.call("gru", formatted("{}, {}, {}, {}, scratch, {}, {}, {}", y, n.inputs[at], n.inputs[at + 1],
                                   options.bias ? n.inputs[at + 2] : "NULL", steps, hidden, d));
    }
  }
  for (std::size_t state = 0; state < (options.lstm() ? 2U : 1U); ++state) {
    if (!n.outputs[1 + state].empty())
      n.body.add(formatted("memcpy({}, {}, {} * sizeof(real));", n.outputs[1 + state], own[state], width));
  }
}

}  // namespace

bool write_c_products(const CNode& n) {
  const Op* op = n.node.op.get();
  if (const auto* linear = dynamic_cast<const LinearOp*>(op)) {
    write_linear(n, *linear);
  } else if (const auto* matmul = dynamic_cast<const MatmulOp*>(op)) {
    write_matmul(n, *matmul);
  } else if (const auto* embedding = dynamic_cast<const EmbeddingOp*>(op)) {
    write_embedding(n, *embedding);
  } else if (const auto* chosen = dynamic_cast<const IndexSelectOp*>(op)) {
    write_index_select(n, *chosen);
  } else if (const auto* recurrent = dynamic_cast<const RecurrentOp*>(op)) {
    write_c_recurrent(n, *recurrent);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx
