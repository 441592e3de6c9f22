// Bags of rows, products of pairs of vectors, and numbers from integers.
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/onnx/node_writer.h"
#include "lockstep/onnx/numbers.h"
#include "lockstep/ops/bag.h"
#include "lockstep/ops/pair_products.h"
#include "lockstep/ops/to_floating.h"

namespace lockstep::onnx {
namespace {

// Whether each entry is used, (N, K, 1), true or false.
std::string used_entries(const NodeWriter& w, const BagOp& op) {
  Document& d = w.document;
  const std::int64_t samples = w.types[0].shape[0], entries = w.types[0].shape[1];
  const auto constant = [&](const Numbers& values) {
    const Shape shape{1, static_cast<std::int64_t>(values.size())};
    if (w.types[1].dtype == DType::I64) return d.constant(Tensor::from<std::int64_t>(shape, values));
    return d.constant(Tensor::from<std::int32_t>(shape, std::vector<std::int32_t>(values.begin(), values.end())));
  };
  std::string used;
  if (op.padding()) {
    used = d.add("Not", {d.add("Equal", {w.inputs[1], constant({*op.padding()})})});
  } else {
    Numbers places(static_cast<std::size_t>(entries));
    std::iota(places.begin(), places.end(), 0);
    used = d.add("Less", {constant(places), d.add("Reshape", {w.inputs[1], d.list({samples, 1})})});
  }
  return d.add("Reshape", {used, d.list({samples, entries, 1})});
}

void write_bag(const NodeWriter& w, const BagOp& op) {
  Document& d = w.document;
  const std::string used = used_entries(w, op), zero = d.scalar(0, w.dtype()), one = d.scalar(1, w.dtype());
  const std::string axis = d.list({1});
  const std::vector<Attribute> summed{{"keepdims", std::int64_t{0}}};
  const std::string count = d.add("ReduceSum", {d.add("Where", {used, one, zero}), axis}, summed);  // (N, 1)
  if (op.mode() == BagMode::Max) {
    const std::string least = d.scalar(-std::numeric_limits<double>::infinity(), w.dtype());
    const std::string largest = d.add("ReduceMax", {d.add("Where", {used, w.inputs[0], least})},
                                      {{"axes", Numbers{1}}, {"keepdims", std::int64_t{0}}});
    d.add("Where", {d.add("Greater", {count, zero}), largest, zero}, {}, w.output);
    return;
  }
  const std::string sum = d.add("ReduceSum", {d.add("Where", {used, w.inputs[0], zero}), axis}, summed);
  if (op.mode() == BagMode::Mean) {
    d.add("Div", {sum, d.add("Max", {count, one})}, {}, w.output);
  } else {
    d.add("Identity", {sum}, {}, w.output);
  }
}

void write_pairs(const NodeWriter& w) {
  Document& d = w.document;
  const std::int64_t samples = w.types[0].shape[0], vectors = w.types[0].shape[1];
  Numbers pairs;
  for (std::int64_t i = 0; i < vectors; ++i) {
    for (std::int64_t j = 0; j < i; ++j) pairs.push_back(i * vectors + j);
  }
  const std::string turned = d.add("Transpose", {w.inputs[0]}, {{"perm", Numbers{0, 2, 1}}});
  const std::string all =
      d.add("Reshape", {d.add("MatMul", {w.inputs[0], turned}), d.list({samples, vectors * vectors})});
  d.add("Gather", {all, d.list(pairs)}, {{"axis", std::int64_t{1}}}, w.output);
}

}  // namespace

bool write_bags(const NodeWriter& w) {
  const Op* op = w.node.op.get();
  if (const auto* bag = dynamic_cast<const BagOp*>(op)) {
    write_bag(w, *bag);
  } else if (dynamic_cast<const PairProductsOp*>(op) != nullptr) {
    write_pairs(w);
  } else if (dynamic_cast<const ToFloatingOp*>(op) != nullptr) {
    w.require(w.dtype() == DType::F32 || w.dtype() == DType::F64, "a conversion to another type than f32 and f64");
    w.document.add("Cast", w.inputs, {{"to", std::int64_t{w.dtype() == DType::F32 ? 1 : 11}}}, w.output);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx
