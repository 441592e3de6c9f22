#include "lockstep/ops/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

constexpr std::string_view kName = "attention";

std::size_t projections(const AttentionAttributes& a) { return a.packed ? 1 : 3; }

std::size_t input_count(const AttentionAttributes& a) {
  return projections(a) + (a.lengths ? 1 : 0) + (a.segments ? 1 : 0) + (a.offset ? 1 : 0) + (a.dropout > 0 ? 2 : 0);
}

bool reads_positions(const AttentionAttributes& a) {
  return a.causal || a.window > 0 || a.alibi || a.segments || a.offset;
}

void require_packed(const AttentionAttributes& a, std::string_view path, const Type& qkv) {
  check(qkv.shape.rank() == 4 && is_floating(qkv.dtype), kName,
        "{}: the input is {}, expected a floating type (samples, steps, heads, width)", path, qkv.str());
  const std::int64_t rest = qkv.shape[2] - a.heads;
  check(
      a.heads >= 1 && rest >= 2 && rest % 2 == 0 && a.heads % (rest / 2) == 0, kName,
      "{}: the input {} has {} heads in all, {} of them of queries; expected as many heads of keys as of values, whose "
      "number divides that of the queries",
      path, qkv.str(), qkv.shape[2], a.heads);
}

void require_separate(std::string_view path, std::span<const Type> inputs) {
  const Type &q = inputs[0], &k = inputs[1], &v = inputs[2];
  check(q.shape.rank() == 4 && k.shape.rank() == 4 && is_floating(q.dtype), kName,
        "{}: queries are {} and keys {}, expected a floating type (samples, steps, heads, width)", path, q.str(),
        k.str());
  check(k == v && k.dtype == q.dtype, kName,
        "{}: queries are {}, keys {} and values {}, expected one type, and one shape of keys and values", path, q.str(),
        k.str(), v.str());
  check(k.shape[0] == q.shape[0] && k.shape[3] == q.shape[3], kName,
        "{}: queries are {} and keys {}, expected the same samples and width", path, q.str(), k.str());
  check(k.shape[2] >= 1 && q.shape[2] % k.shape[2] == 0, kName,
        "{}: {} heads of queries and {} of keys, expected a multiple", path, q.shape[2], k.shape[2]);
}

void require_options(const AttentionAttributes& a, std::string_view path, const AttentionSizes& s) {
  check(a.window >= 0, kName, "{}: the window is {}, expected 0 for none or a number of positions", path, a.window);
  check(std::isfinite(a.scale), kName, "{}: the scale is {}, expected a finite number", path, a.scale);
  check(a.dropout >= 0 && a.dropout < 1, kName, "{}: dropout is {}, expected a number in [0, 1)", path, a.dropout);
  check(!reads_positions(a) || s.queries <= s.keys, kName,
        "{}: {} queries and {} keys, expected no fewer keys than queries, as positions count (causal, window, ALiBi, "
        "segments or offset)",
        path, s.queries, s.keys);
}

void require_masks(const AttentionAttributes& a, std::string_view path, const AttentionSizes& s,
                   std::span<const Type> inputs) {
  std::size_t at = projections(a);
  const auto require = [&](bool there, std::string_view what, const Type& expected) {
    if (!there) return;
    check(inputs[at] == expected, kName, "{}: {} are {}, expected {}", path, what, inputs[at].str(), expected.str());
    ++at;
  };
  require(a.lengths, "lengths", {Shape{s.samples}, DType::I32});
  require(a.segments, "segments", {Shape{s.samples, s.keys}, DType::I32});
  require(a.offset, "offsets", {Shape{s.samples}, DType::I32});
}

std::string described(const AttentionAttributes& a) {
  std::string text = a.causal ? "causal" : "full";
  if (a.window > 0) text += formatted(" window {}", a.window);
  if (a.alibi) text += " alibi";
  if (a.lengths) text += " lengths";
  if (a.segments) text += " segments";
  if (a.dropout > 0) text += formatted(" dropout {}", a.dropout);
  return text;
}

// Pairs of a query and a key that it may see, without what is known at run time alone.
double visible_pairs(const AttentionAttributes& a, const AttentionSizes& s) {
  double pairs = 0;
  for (std::int64_t t = 0; t < s.queries; ++t) {
    const std::int64_t p = s.keys - s.queries + t;
    const std::int64_t first = a.window > 0 ? std::max<std::int64_t>(0, p - a.window + 1) : 0;
    std::int64_t last = a.causal ? p + 1 : s.keys;
    if (a.window > 0) last = std::min(last, p + a.window);
    pairs += static_cast<double>(std::max<std::int64_t>(0, last - first));
  }
  return pairs * static_cast<double>(s.samples * s.heads);
}

Value attend(AttentionAttributes a, std::vector<Value> inputs, const AttentionOptions& o) {
  Graph& graph = inputs[0].graph();
  check(inputs[0].shape().rank() == 4, kName, "{}: the input is {}, expected (samples, steps, heads, width)",
        axes::path(inputs[0]), inputs[0].type().str());
  const std::int64_t samples = inputs[0].shape()[0], width = inputs[0].shape()[3];
  for (Value& v : inputs) v = cast_for_product(v);
  a.causal = o.causal;
  // A window that reaches over all keys is one of as many; the sums of positions with a larger one would overflow.
  const Shape& of_keys = inputs[a.packed ? 0 : 1].shape();
  a.window = of_keys.rank() == 4 ? std::min(o.window, std::max<std::int64_t>(1, of_keys[1])) : o.window;
  a.scale = o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, width)));
  a.alibi = o.alibi;
  a.dropout = graph.training() ? o.dropout : 0;
  a.key = a.dropout > 0 ? graph.random_key(o.call_site) : 0;
  a.lengths = static_cast<bool>(o.lengths);
  a.segments = static_cast<bool>(o.segments);
  a.offset = static_cast<bool>(o.offset);
  for (const Value& v : {o.lengths, o.segments, o.offset}) {
    if (v) inputs.push_back(v);
  }
  if (a.dropout > 0) {
    inputs.push_back(graph.step());
    inputs.push_back(graph.sample_ids(samples));
  }
  return graph.apply(std::make_shared<AttentionOp>(a), std::move(inputs))[0];
}

}  // namespace

AttentionSizes::AttentionSizes(const AttentionAttributes& a, std::span<const Type> inputs)
    : samples(inputs[0].shape[0]), queries(inputs[0].shape[1]), width(inputs[0].shape[3]) {
  keys = a.packed ? queries : inputs[1].shape[1];
  heads = a.packed ? a.heads : inputs[0].shape[2];
  key_heads = a.packed ? (inputs[0].shape[2] - heads) / 2 : inputs[1].shape[2];
}

std::vector<Type> AttentionOp::infer(std::string_view path, std::span<const Type> inputs) const {
  attributes_.packed ? require_packed(attributes_, path, inputs[0]) : require_separate(path, inputs);
  const AttentionSizes s(attributes_, inputs);
  require_options(attributes_, path, s);
  require_masks(attributes_, path, s, inputs);
  return {{Shape{s.samples, s.queries, s.heads, s.width}, inputs[0].dtype},
          {Shape{s.samples, s.heads, s.queries}, sum_type(inputs[0].dtype)}};
}

std::vector<Value> AttentionOp::gradient(const Request& r) const {
  check(r.gradients[0] && !r.gradients[1], name(), "only the result itself can be differentiated");
  std::vector<Value> inputs(r.inputs.begin(), r.inputs.end());
  inputs.insert(inputs.end(), {r.outputs[0], r.outputs[1], r.gradients[0]});
  std::vector<Value> result =
      r.inputs[0].graph().apply(std::make_shared<AttentionGradientOp>(attributes_), std::move(inputs));
  result.resize(r.inputs.size());
  return result;
}

double AttentionOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  const AttentionSizes s(attributes_, inputs);
  return 4 * visible_pairs(attributes_, s) * static_cast<double>(s.width);
}

std::string AttentionOp::attributes() const { return described(attributes_); }

std::vector<Type> AttentionGradientOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const std::size_t count = input_count(attributes_);
  check(inputs.size() == count + 3 && inputs[count + 2] == inputs[count], name(),
        "{}: the gradient of the result is {}, expected {}", path, inputs.back().str(), inputs[count].str());
  return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(projections(attributes_))};
}

double AttentionGradientOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  const AttentionSizes s(attributes_, inputs);
  return 10 * visible_pairs(attributes_, s) * static_cast<double>(s.width);  // five products
}

std::string AttentionGradientOp::attributes() const { return described(attributes_); }

Value attention(Value q, Value k, Value v, const AttentionOptions& options) { return attend({}, {q, k, v}, options); }

Value self_attention(Value qkv, std::int64_t heads, const AttentionOptions& options) {
  return attend({.heads = heads, .packed = true}, {qkv}, options);
}

std::vector<double> alibi_slopes(std::int64_t heads) {
  const auto power =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(1, heads))));
  const auto slope = [](std::int64_t of, std::int64_t h) {
    return math::pow(2.0, -8.0 * static_cast<double>(h + 1) / static_cast<double>(of));
  };
  std::vector<double> slopes;
  for (std::int64_t h = 0; h < heads; ++h) {
    slopes.push_back(h < power ? slope(power, h) : slope(2 * power, 2 * (h - power)));
  }
  return slopes;
}

}  // namespace lockstep
