// Attention, in products and a softmax: scores lie in memory as a whole in the runtime that reads the file. And rotary
// positions, with cosines and sines as constants.
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/math.h"
#include "lockstep/onnx/node_writer.h"
#include "lockstep/onnx/numbers.h"
#include "lockstep/ops/attention.h"
#include "lockstep/ops/rotary.h"

namespace lockstep::onnx {
namespace {

// (N, T, H, D) -> (N, H, T, D), and back.
std::string heads_first(const NodeWriter& w, const std::string& name, const std::string& output = "") {
  return w.document.add("Transpose", {name}, {{"perm", Numbers{0, 2, 1, 3}}}, output);
}

std::string slice_of(const NodeWriter& w, const std::string& name, std::int64_t axis, std::int64_t from,
                     std::int64_t to) {
  Document& d = w.document;
  return d.add("Slice", {name, d.list({from}), d.list({to}), d.list({axis})});
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

// The numbers that are added to the scores: (H, T, S), of one head where all have the same.
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

// cos and sin of the angle of each step and pair, (T, 1, pairs), with a last axis of 1 where pairs are neighbours.
std::pair<std::string, std::string> rotations(const NodeWriter& w, const RotaryOp::Attributes& a) {
  const std::int64_t steps = w.shape()[1], pairs = a.width / 2;
  std::vector<double> cosines, sines;
  for (std::int64_t t = 0; t < steps; ++t) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double power = -2.0 * static_cast<double>(i) / static_cast<double>(a.width);
      const double angle = static_cast<double>(t + a.position) * a.scale * math::pow(a.base, power);
      cosines.push_back(math::cos(angle));
      sines.push_back(a.inverse ? -math::sin(angle) : math::sin(angle));
    }
  }
  const Shape shape = a.neighbours ? Shape{steps, 1, pairs, 1} : Shape{steps, 1, pairs};
  const auto constant = [&](const std::vector<double>& values) {
    return w.document.constant(Tensor::from<double>(shape, values).to(w.dtype()));
  };
  return {constant(cosines), constant(sines)};
}

void write_rotary(const NodeWriter& w, const RotaryOp::Attributes& a) {
  w.require(w.inputs.size() == 1, "an offset of positions");
  Document& d = w.document;
  const Shape& shape = w.shape();  // (N, T, H, D)
  const std::int64_t axis = a.neighbours ? 4 : 3, pairs = a.width / 2;
  std::string x = slice_of(w, slice_of(w, w.inputs[0], 2, 0, a.heads), 3, 0, a.width);
  if (a.neighbours) x = d.add("Reshape", {x, d.list({shape[0], shape[1], a.heads, pairs, 2})});
  const std::int64_t half = a.neighbours ? 1 : pairs;
  const std::string first = slice_of(w, x, axis, 0, half), second = slice_of(w, x, axis, half, 2 * half);
  const auto [cosines, sines] = rotations(w, a);
  const std::string new_first = d.add("Sub", {d.add("Mul", {first, cosines}), d.add("Mul", {second, sines})});
  const std::string new_second = d.add("Add", {d.add("Mul", {first, sines}), d.add("Mul", {second, cosines})});
  std::string turned = d.add("Concat", {new_first, new_second}, {{"axis", axis}});
  if (a.neighbours) turned = d.add("Reshape", {turned, d.list({shape[0], shape[1], a.heads, a.width})});
  if (a.width < shape[3]) {
    const std::string rest = slice_of(w, slice_of(w, w.inputs[0], 2, 0, a.heads), 3, a.width, shape[3]);
    turned = d.add("Concat", {turned, rest}, {{"axis", std::int64_t{3}}});
  }
  if (a.heads < shape[2])
    turned = d.add("Concat", {turned, slice_of(w, w.inputs[0], 2, a.heads, shape[2])}, {{"axis", std::int64_t{2}}});
  d.add("Identity", {turned}, {}, w.output);
}

}  // namespace

bool write_attention(const NodeWriter& w) {
  if (const auto* rotary = dynamic_cast<const RotaryOp*>(w.node.op.get())) {
    write_rotary(w, rotary->options());
    return true;
  }
  const auto* op = dynamic_cast<const AttentionOp*>(w.node.op.get());
  if (op == nullptr) return false;
  const AttentionAttributes& a = op->options();
  w.require(!a.lengths && !a.segments && !a.offset, "attention with lengths, segments or an offset");
  w.require(a.dropout == 0, "dropout");
  const AttentionSizes s(a, w.types);
  Document& d = w.document;
  const std::string q = heads_first(w, a.packed ? slice_of(w, w.inputs[0], 2, 0, s.heads) : w.inputs[0]);
  const std::string k =
      heads_first(w, a.packed ? slice_of(w, w.inputs[0], 2, s.heads, s.heads + s.key_heads) : w.inputs[1]);
  const std::string v = heads_first(
      w, a.packed ? slice_of(w, w.inputs[0], 2, s.heads + s.key_heads, s.heads + 2 * s.key_heads) : w.inputs[2]);
  const std::string turned = d.add("Transpose", {for_all_heads(w, k, s)}, {{"perm", Numbers{0, 1, 3, 2}}});
  std::string scores = d.add("Mul", {d.add("MatMul", {q, turned}), d.scalar(a.scale, w.dtype())});
  if (a.causal || a.window > 0 || a.alibi) scores = d.add("Add", {scores, d.constant(bias_of(a, s, w.dtype()))});
  const std::string weights = d.add("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  heads_first(w, d.add("MatMul", {weights, for_all_heads(w, v, s)}), w.output);
  return true;
}

}  // namespace lockstep::onnx
