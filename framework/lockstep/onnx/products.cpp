// Linear layers, products of matrices, and rows of tables.
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/onnx/node_writer.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/linear.h"

namespace lockstep::onnx {
namespace {

// `name` with its last two dimensions exchanged.
std::string transposed(const NodeWriter& w, const std::string& name, int rank) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return w.document.add("Transpose", {name}, {{"perm", order}});
}

}  // namespace

bool write_products(const NodeWriter& w) {
  const Op* op = w.node.op.get();
  if (const auto* linear = dynamic_cast<const LinearOp*>(op)) {
    w.require(!linear->relu(), "an epilogue");
    w.document.add("Gemm", w.inputs, {{"transB", std::int64_t{1}}}, w.output);
  } else if (const auto* matmul = dynamic_cast<const MatmulOp*>(op)) {
    const std::string a = matmul->transpose_a() ? transposed(w, w.inputs[0], w.types[0].shape.rank()) : w.inputs[0];
    const std::string b = matmul->transpose_b() ? transposed(w, w.inputs[1], w.types[1].shape.rank()) : w.inputs[1];
    w.document.add("MatMul", {a, b}, {}, w.output);
  } else if (const auto* embedding = dynamic_cast<const EmbeddingOp*>(op)) {
    w.require(!embedding->masks(), "a masked embedding");
    w.document.add("Gather", {w.inputs[0], w.inputs[1]}, {{"axis", std::int64_t{0}}}, w.output);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx
