// Attention of queries to keys and values by heads (Vaswani et al., "Attention is all you need", 2017): for each query,
// the mean of the values with the weights softmax(scale q k + bias). The scores never lie in memory as a whole: forward
// keeps one number per query, the logarithm of the sum of the exponentials, and backward computes the scores again
// block by block (Dao et al., "FlashAttention", 2022, algorithms 1 and 4). It can be differentiated once; softmax and
// matmul compose the same any number of times.
//
// q is (N, T, H, D), k and v are (N, S, G, D) with H a multiple of G: head h reads key head h / (H / G) (grouped heads,
// Ainslie et al., "GQA", 2023). The result is (N, T, H, D), in the type of q. In bf16 scores and sums are f32.
//
// Query t stands at position p = offset + t, key s at position s; the offset is S - T where none is given, so that the
// last query stands at the last key. (Where p counts, there are no fewer keys than queries.) A query sees a key only
// where all that is asked for holds:
//   causal     s <= p
//   window w   p - w < s, and s < p + w (Beltagy et al., "Longformer", 2020)
//   lengths    s < lengths[n]
//   segments   segments[n][s] is that of the query, segments[n][p]: packed sequences, or a mask of padded positions
// A query that sees no key gets 0 and gives no gradient.
#pragma once

#include <string>
#include <vector>

#include "lockstep/graph/graph.h"

namespace lockstep {

struct AttentionOptions {
  bool causal = false;
  std::int64_t window = 0;  // 0: none
  double scale = 0;         // of the products; 0: 1 / sqrt(D)
  // Adds -slope |p - s| to each score (Press et al., "Train short, test long", 2022), where head h of H = 2^m has the
  // slope 2^(-8 (h + 1) / H); other H take the slopes of the next smaller 2^m, then every other slope of the next
  // larger.
  bool alibi = false;
  // In training each weight becomes 0 with this probability, in [0, 1), else it is divided by 1 - dropout. The choice
  // is that of dropout() (ops/dropout.h) on weights (N, H, T, S) at this call site, a module path; each use of one
  // site, also by a dropout(), has a mask of its own.
  double dropout = 0;
  std::string call_site = {};
  Value lengths = {};   // i32 (N); from 0 to S
  Value segments = {};  // i32 (N, S)
  Value offset = {};    // i32 (N), from 0 to S - T: positions of the first queries, for caches that have room left
};

// Throws Error where shapes or types do not fit. A length or an offset out of its range throws SampleError when the
// plan runs.
Value attention(Value q, Value k, Value v, const AttentionOptions& options = {});
// The same for queries, keys and values in one value (N, T, H + 2 G, D): `heads` heads of queries, then G of keys, then
// G of values, as one linear layer gives them. The call copies nothing, and its gradient is one value too.
Value self_attention(Value qkv, std::int64_t heads, const AttentionOptions& options = {});

// The slopes of ALiBi by head.
std::vector<double> alibi_slopes(std::int64_t heads);

// The attributes of a node.
struct AttentionAttributes {
  std::int64_t heads = 0;  // of the queries, where `packed`
  bool packed = false;
  bool causal = false;
  std::int64_t window = 0;
  double scale = 0;  // not 0
  bool alibi = false;
  double dropout = 0;
  std::uint64_t key = 0;
  bool lengths = false, segments = false, offset = false;  // whether there are these inputs
};

// The sizes from which kernels and shapes of both ops follow; `inputs` are those of AttentionOp.
struct AttentionSizes {
  AttentionSizes(const AttentionAttributes& attributes, std::span<const Type> inputs);
  std::int64_t samples, queries, keys, heads, key_heads, width;  // N, T, S, H, G, D
};

// (q, k, v or qkv, [lengths], [segments], [offset], [step, sample ids where there is dropout])
// -> result (N, T, H, D), log-sum-exp (N, H, T), which is -infinity where a query sees no key.
class AttentionOp : public Op {
 public:
  explicit AttentionOp(AttentionAttributes attributes) : attributes_(attributes) {}
  const AttentionAttributes& options() const { return attributes_; }
  std::string_view name() const override { return "attention"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  AttentionAttributes attributes_;
};

// (the inputs of AttentionOp, its result, log-sum-exp, dresult) -> dq, dk, dv or dqkv.
class AttentionGradientOp : public Op {
 public:
  explicit AttentionGradientOp(AttentionAttributes attributes) : attributes_(attributes) {}
  const AttentionAttributes& options() const { return attributes_; }
  std::string_view name() const override { return "attention_gradient"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  AttentionAttributes attributes_;
};

}  // namespace lockstep
