// Attention, in products and a softmax: scores lie in memory as a whole in the runtime that reads the file.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/ops/attention.h"
#include "tools/onnx/node_writer.h"

namespace lockstep::onnx {
namespace {

using Numbers = std::vector<std::int64_t>;

// (N, T, H, D) -> (N, H, T, D), and back.
std::string heads_first(const NodeWriter& w, const std::string& name, const std::string& output = "") {
  return w.document.add("Transpose", {name}, {{"perm", Numbers{0, 2, 1, 3}}}, output);
}

std::string part_of(const NodeWriter& w, std::int64_t from, std::int64_t to) {
  Document& d = w.document;
  return d.add("Slice", {w.inputs[0], d.list({from}), d.list({to}), d.list({2})});
}

// Keys or values (N, G, S, D), each head repeated for the queries that read it: (N, H, S, D).
std::string for_all_heads(const NodeWriter& w, const std::string& name, const AttentionSizes& s) {
  if (s.heads == s.key_heads) return name;
  Document& d = w.document;
  const std::int64_t repeats = s.heads / s.key_heads;
  const std::string apart = d.add("Reshape", {name, d.list({s.samples, s.key_heads, 1, s.keys, s.width})});
  const std::string wide = d.add("Expand", {apart, d.list({s.samples, s.key_heads, repeats, s.keys, s.width})});
  return d.add("Reshape", {wide, d.list({s.samples, s.heads, s.keys, s.width})});
}

// What is added to the scores: (H, T, S), of one head where all have the same.
Tensor bias_of(const AttentionAttributes& a, const AttentionSizes& s, DType dtype) {
  const std::vector<double> slopes = a.alibi ? alibi_slopes(s.heads) : std::vector<double>{0};
  std::vector<double> bias;
  for (const double slope : slopes) {
    for (std::int64_t t = 0; t < s.queries; ++t) {
      const std::int64_t p = s.keys - s.queries + t;
      for (std::int64_t key = 0; key < s.keys; ++key) {
        const bool near = a.window == 0 || (p - a.window < key && key < p + a.window);
        const bool seen = near && (!a.causal || key <= p);
        bias.push_back(seen ? -slope * std::abs(static_cast<double>(p - key))
                            : -std::numeric_limits<double>::infinity());
      }
    }
  }
  const auto heads = static_cast<std::int64_t>(slopes.size());
  return Tensor::from<double>(Shape{heads, s.queries, s.keys}, bias).to(dtype);
}

}  // namespace

bool write_attention(const NodeWriter& w) {
  const auto* op = dynamic_cast<const AttentionOp*>(w.node.op.get());
  if (op == nullptr) return false;
  const AttentionAttributes& a = op->options();
  w.require(!a.lengths && !a.segments && !a.offset, "attention with lengths, segments or an offset");
  w.require(a.dropout == 0, "dropout");
  const AttentionSizes s(a, w.types);
  Document& d = w.document;
  const std::string q = heads_first(w, a.packed ? part_of(w, 0, s.heads) : w.inputs[0]);
  const std::string k = heads_first(w, a.packed ? part_of(w, s.heads, s.heads + s.key_heads) : w.inputs[1]);
  const std::string v =
      heads_first(w, a.packed ? part_of(w, s.heads + s.key_heads, s.heads + 2 * s.key_heads) : w.inputs[2]);
  const std::string turned = d.add("Transpose", {for_all_heads(w, k, s)}, {{"perm", Numbers{0, 1, 3, 2}}});
  std::string scores = d.add("Mul", {d.add("MatMul", {q, turned}), d.scalar(a.scale, w.dtype())});
  if (a.causal || a.window > 0 || a.alibi) scores = d.add("Add", {scores, d.constant(bias_of(a, s, w.dtype()))});
  const std::string weights = d.add("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  heads_first(w, d.add("MatMul", {weights, for_all_heads(w, v, s)}), w.output);
  return true;
}

}  // namespace lockstep::onnx
