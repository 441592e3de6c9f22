// Attention, rotary positions and the cross entropy over a vocabulary. Integers are the graph's input "target".
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "lockstep/core/random.h"
#include "lockstep/ops/attention.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/rotary.h"
#include "lockstep/ops/slice.h"
#include "lockstep/ops/vocabulary_cross_entropy.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

using Ints = std::vector<std::int32_t>;

constexpr const char* kSite = "blocks.0.attention";

struct AttentionSetting {
  std::int64_t samples = 2, queries = 5, keys = 5, heads = 2, key_heads = 2, width = 3;
  bool packed = false;
  AttentionOptions options = {};
  Ints lengths = {}, segments = {}, offsets = {};

  Ints targets() const {
    Ints all = lengths;
    all.insert(all.end(), segments.begin(), segments.end());
    all.insert(all.end(), offsets.begin(), offsets.end());
    return all;
  }
};

// One attention head of one sample, by plain loops on what the options say.
class Head {
 public:
  Head(const AttentionSetting& s, std::span<const Array> in, std::int64_t n, std::int64_t h)
      : s_(s),
        in_(in),
        n_(n),
        h_(h),
        slope_(s.options.alibi ? alibi_slopes(s.heads)[static_cast<std::size_t>(h)] : 0) {}

  bool sees(std::int64_t t, std::int64_t s) const {
    const auto at = static_cast<std::size_t>(n_);
    const std::int64_t p = position(t), w = s_.options.window;
    if (s_.options.causal && s > p) return false;
    if (w > 0 && std::abs(s - p) >= w) return false;
    if (!s_.lengths.empty() && s >= s_.lengths[at]) return false;
    const auto segment = [&](std::int64_t i) { return s_.segments[static_cast<std::size_t>(n_ * s_.keys + i)]; };
    return s_.segments.empty() || segment(s) == segment(p);
  }
  double score(std::int64_t t, std::int64_t s) const {
    double sum = 0;
    for (std::int64_t i = 0; i < s_.width; ++i) sum += element(0, t, h_, i) * element(1, s, key_head(), i);
    const double scale = s_.options.scale != 0 ? s_.options.scale : 1 / std::sqrt(static_cast<double>(s_.width));
    return scale * sum - slope_ * std::abs(static_cast<double>(position(t) - s));
  }
  // 0, or 1 / (1 - dropout).
  double kept(std::int64_t t, std::int64_t s) const {
    if (s_.options.dropout == 0) return 1;
    const auto index = static_cast<std::uint64_t>((h_ * s_.queries + t) * s_.keys + s);
    const Philox words = philox(mix(3, hash_name(kSite)), index / 4, mix(7, static_cast<std::uint64_t>(100 + n_)));
    return unit_interval(words[index % 4]) < s_.options.dropout ? 0 : 1 / (1 - s_.options.dropout);
  }
  void write(Array& y) const {
    for (std::int64_t t = 0; t < s_.queries; ++t) {
      double total = 0;
      for (std::int64_t s = 0; s < s_.keys; ++s) total += sees(t, s) ? std::exp(score(t, s)) : 0;
      for (std::int64_t s = 0; s < s_.keys; ++s) {
        if (!sees(t, s)) continue;
        const double p = kept(t, s) * std::exp(score(t, s)) / total;
        for (std::int64_t i = 0; i < s_.width; ++i) y.at(n_, t, h_, i) += p * element(2, s, key_head(), i);
      }
    }
  }

 private:
  std::int64_t position(std::int64_t t) const {
    return t + (s_.offsets.empty() ? s_.keys - s_.queries : s_.offsets[static_cast<std::size_t>(n_)]);
  }
  std::int64_t key_head() const { return h_ / (s_.heads / s_.key_heads); }
  double element(int which, std::int64_t at, std::int64_t head, std::int64_t i) const {
    if (!s_.packed) return in_[static_cast<std::size_t>(which)].at(n_, at, head, i);
    const std::int64_t first[] = {0, s_.heads, s_.heads + s_.key_heads};
    return in_[0].at(n_, at, first[which] + head, i);
  }

  const AttentionSetting& s_;
  std::span<const Array> in_;
  std::int64_t n_, h_;
  double slope_;
};

Array reference(const AttentionSetting& s, std::span<const Array> in) {
  Array y(Shape{s.samples, s.queries, s.heads, s.width});
  for (std::int64_t n = 0; n < s.samples; ++n) {
    for (std::int64_t h = 0; h < s.heads; ++h) Head(s, in, n, h).write(y);
  }
  return y;
}

Value trace(const AttentionSetting& s, std::span<const Value> v) {
  AttentionOptions o = s.options;
  o.call_site = kSite;
  const auto count = static_cast<std::int64_t>(s.targets().size());
  std::int64_t at = 0;
  const auto next = [&](const Ints& values, Shape shape) {
    if (values.empty()) return Value();
    const Value all = v[0].graph().input("target", {Shape{count}, DType::I32});
    const Value part = reshape(slice(all, 0, at, shape.elements()), shape);
    at += shape.elements();
    return part;
  };
  o.lengths = next(s.lengths, {s.samples});
  o.segments = next(s.segments, {s.samples, s.keys});
  o.offset = next(s.offsets, {s.samples});
  return s.packed ? self_attention(v[0], s.heads, o) : attention(v[0], v[1], v[2], o);
}

Row row(std::string config, AttentionSetting s) {
  const Shape keys{s.samples, s.keys, s.key_heads, s.width};
  std::vector<Operand> operands{{Shape{s.samples, s.queries, s.heads, s.width}, -2, 2}, {keys, -2, 2}, {keys}};
  if (s.packed) operands = {{Shape{s.samples, s.queries, s.heads + 2 * s.key_heads, s.width}, -2, 2}};
  return {.op = "attention",
          .config = std::move(config),
          .operands = std::move(operands),
          .trace = [s](auto v) { return trace(s, v); },
          .reference = [s](auto in) { return reference(s, in); },
          .targets = s.targets()};
}

struct Turn {
  RotaryOptions options = {};
  Ints offsets = {};
};

Array turned(const Turn& s, const Array& x) {
  Array y = x;
  const RotaryOptions& o = s.options;
  const std::int64_t width = o.width != 0 ? o.width : x.shape[3], heads = o.heads != 0 ? o.heads : x.shape[2];
  for (std::int64_t n = 0; n < x.shape[0]; ++n) {
    for (std::int64_t t = 0; t < x.shape[1]; ++t) {
      const std::int64_t at = o.position + t + (s.offsets.empty() ? 0 : s.offsets[static_cast<std::size_t>(n)]);
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t i = 0; i < width / 2; ++i) {
          const double angle = static_cast<double>(at) * o.scale *
                               std::pow(o.base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
          const std::int64_t first = o.neighbours ? 2 * i : i, second = o.neighbours ? 2 * i + 1 : i + width / 2;
          const double a = x.at(n, t, h, first), b = x.at(n, t, h, second);
          y.at(n, t, h, first) = a * std::cos(angle) - b * std::sin(angle);
          y.at(n, t, h, second) = a * std::sin(angle) + b * std::cos(angle);
        }
      }
    }
  }
  return y;
}

Row rotary_row(std::string config, Turn s) {
  return {.op = "rotary",
          .config = std::move(config),
          .operands = {{Shape{2, 3, 3, 6}}},
          .trace =
              [s](auto v) {
                RotaryOptions o = s.options;
                if (!s.offsets.empty()) o.offset = v[0].graph().input("target", {Shape{2}, DType::I32});
                return rotary(v[0], o);
              },
          .reference = [s](auto in) { return turned(s, in[0]); },
          .targets = s.offsets};
}

struct Words {
  std::int64_t features = 3, vocabulary = 5;
  VocabularyCrossEntropyOptions options = {};
  bool bias = false, weights = false;
  bool total = false;                 // the sum of the losses, by way of their mean and the sum of weights
  Ints targets = {1, 4, 0, 4, 2, 1};  // of 2 samples
};

Array vocabulary_loss(const Words& s, std::span<const Array> in) {
  const double e = s.options.label_smoothing;
  double loss = 0, weight = 0;
  for (std::size_t m = 0; m < s.targets.size(); ++m) {
    if (s.targets[m] == s.options.ignore_index) continue;
    std::vector<double> z(static_cast<std::size_t>(s.vocabulary));
    for (std::size_t v = 0; v < z.size(); ++v) {
      z[v] = s.bias ? in[2].values[v] : 0;
      for (std::int64_t i = 0; i < s.features; ++i)
        z[v] += in[0][static_cast<std::int64_t>(m) * s.features + i] * in[1].at(static_cast<std::int64_t>(v), i);
    }
    double partition = 0;
    for (const double value : z) partition += std::exp(value);
    const double mean = std::accumulate(z.begin(), z.end(), 0.0) / static_cast<double>(z.size());
    const double own = s.weights ? in.back()[static_cast<std::int64_t>(m)] : 1;
    loss += own * (std::log(partition) - (1 - e) * z[static_cast<std::size_t>(s.targets[m])] - e * mean);
    weight += own;
  }
  Array y(Shape{});
  y[0] = s.total ? loss : weight == 0 ? 0 : loss / weight;
  return y;
}

Row vocabulary_row(std::string config, Words s) {
  const auto count = static_cast<std::int64_t>(s.targets.size());
  std::vector<Operand> operands{{Shape{2, count / 2, s.features}, -2, 2}, {Shape{s.vocabulary, s.features}, -2, 2}};
  std::vector<bool> constant{false, false};
  if (s.bias) operands.push_back({Shape{s.vocabulary}});
  if (s.weights) operands.push_back({Shape{2, count / 2}, 0.5, 2});
  constant.resize(operands.size());
  if (s.weights) constant.back() = true;
  return {.op = "vocabulary_cross_entropy",
          .config = std::move(config),
          .operands = std::move(operands),
          .trace =
              [s, count](auto v) {
                const Value all = v[0].graph().input("target", {Shape{count}, DType::I32});
                const Value targets = reshape(all, Shape{2, count / 2});
                const Loss loss = vocabulary_cross_entropy(v[0], v[1], s.bias ? v[2] : Value(), targets, s.options,
                                                           {.mask = s.weights ? v.back() : Value()})
                                      .loss;
                return s.total ? loss.mean * loss.weight : loss.mean;
              },
          .reference = [s](auto in) { return vocabulary_loss(s, in); },
          .targets = s.targets,
          .constant = constant};
}

std::vector<Row> vocabulary_rows() {
  Ints many(46);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int32_t>(i * 29 % 71);
  many[7] = -100;
  return {vocabulary_row("plain", {}),
          vocabulary_row("bias_and_smoothing", {.options = {.label_smoothing = 0.2}, .bias = true}),
          vocabulary_row("ignored_and_weights",
                         {.options = {.ignore_index = 4}, .weights = true, .targets = {1, 4, 0, 4, 2, 1}}),
          vocabulary_row("sum_of_losses", {.weights = true, .total = true}),
          vocabulary_row("all_ignored", {.options = {.ignore_index = 4}, .targets = {4, 4, 4, 4}}),
          vocabulary_row("blocks", {.features = 6,
                                    .vocabulary = 71,
                                    .options = {.label_smoothing = 0.1},
                                    .bias = true,
                                    .weights = true,
                                    .targets = many})};
}

std::vector<Row> rotary_rows() {
  return {rotary_row("halves", {}), rotary_row("neighbours", {.options = {.neighbours = true}}),
          rotary_row("part_of_heads_and_width_scaled",
                     {.options = {.base = 100, .width = 4, .heads = 2, .scale = 0.5, .position = 3}}),
          rotary_row("offsets", {.options = {.position = 1}, .offsets = {4, 0}})};
}

}  // namespace

std::vector<Row> attention_rows() {
  std::vector<Row> rows{
      row("full", {}),
      row("causal_packed", {.packed = true, .options = {.causal = true}}),
      row("causal_behind_earlier_keys", {.queries = 3, .keys = 7, .options = {.causal = true}}),
      row("more_queries_than_keys", {.queries = 7, .keys = 3, .options = {.scale = 0.3}}),
      row("window_grouped", {.queries = 7, .keys = 7, .heads = 4, .options = {.window = 3}}),
      row("window_without_end", {.options = {.window = std::numeric_limits<std::int64_t>::max()}}),
      row("causal_window_grouped_packed", {.queries = 7,
                                           .keys = 7,
                                           .heads = 4,
                                           .key_heads = 1,
                                           .packed = true,
                                           .options = {.causal = true, .window = 2}}),
      row("alibi_of_three_heads", {.heads = 3, .key_heads = 3, .options = {.alibi = true}}),
      row("lengths_one_of_them_0", {.options = {.causal = true}, .lengths = {0, 4}}),
      row("segments", {.packed = true, .options = {.causal = true}, .segments = {0, 0, 1, 1, 1, 3, 3, 3, 3, 2}}),
      row("offsets_of_a_cache",
          {.queries = 2, .keys = 6, .options = {.causal = true, .alibi = true}, .offsets = {0, 3}}),
      row("dropout", {.options = {.dropout = 0.4}}),
      row("dropout_of_fours", {.queries = 6, .keys = 8, .key_heads = 1, .options = {.causal = true, .dropout = 0.2}}),
      // More queries than a panel of the native kernels has.
      row("blocks", {.samples = 1,
                     .queries = 34,
                     .keys = 36,
                     .heads = 1,
                     .key_heads = 1,
                     .width = 2,
                     .options = {.causal = true, .alibi = true}}),
  };
  for (const auto part : {rotary_rows, vocabulary_rows}) {
    for (Row& r : part()) rows.push_back(std::move(r));
  }
  return rows;
}

}  // namespace lockstep::optest
