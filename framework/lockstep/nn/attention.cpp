#include "lockstep/nn/attention.h"

#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/graph/module_path.h"
#include "lockstep/nn/init.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"
#include "lockstep/ops/write_rows.h"

namespace lockstep::nn {
namespace {

MultiheadAttentionConfig checked(MultiheadAttentionConfig c) {
  if (c.key_heads == 0) c.key_heads = c.num_heads;
  check(c.embed_dim >= 1 && c.num_heads >= 1 && c.embed_dim % c.num_heads == 0, "attention",
        "{} features and {} heads, expected heads that divide the features", c.embed_dim, c.num_heads);
  check(c.key_heads >= 1 && c.num_heads % c.key_heads == 0, "attention",
        "{} heads of queries and {} of keys, expected a multiple", c.num_heads, c.key_heads);
  check(c.dropout >= 0 && c.dropout < 1, "attention", "dropout is {}, expected a number in [0, 1)", c.dropout);
  return c;
}

std::int64_t in_rows(const MultiheadAttentionConfig& c) {
  return c.embed_dim + 2 * c.key_heads * (c.embed_dim / c.num_heads);
}

// Of the two layers of a SwiGLU whose results are multiplied.
LinearConfig half_config(const SwiGLUConfig& c) {
  return {.in = c.in, .out = c.hidden, .bias = c.bias, .weight_init = c.weight_init, .bias_init = c.bias_init};
}

Initializer or_else(const Initializer& given, const Initializer& standard) { return given ? given : standard; }

}  // namespace

MultiheadAttention::MultiheadAttention(MultiheadAttentionConfig c)
    : config_(checked(std::move(c))),
      in_weight_(add("in_proj_weight", Parameter{.shape = {in_rows(config_), config_.embed_dim},
                                                 .initialize = or_else(config_.weight_init, xavier_uniform())})),
      in_bias_(config_.bias
                   ? &add("in_proj_bias",
                          Parameter{.shape = {in_rows(config_)}, .initialize = constant(0), .role = Role::Bias})
                   : nullptr),
      out_proj_(this, "out_proj",
                {.in = config_.embed_dim,
                 .out = config_.embed_dim,
                 .bias = config_.bias,
                 .weight_init = config_.out_weight_init,
                 .bias_init = constant(0)}) {}

AttentionOptions MultiheadAttention::options(const AttentionMasks& masks) const {
  return {.causal = config_.causal,
          .window = config_.window,
          .alibi = config_.alibi,
          .dropout = config_.dropout,
          .call_site = path(),
          .lengths = masks.lengths,
          .segments = masks.segments};
}

Value MultiheadAttention::projected(Value x, std::int64_t begin, std::int64_t end) const {
  Graph& g = x.graph();
  check(x.shape().rank() == 3 && x.shape()[2] == config_.embed_dim, "attention",
        "{}: input is {}, expected (samples, steps, {})", path_or_model(path()), x.type().str(), config_.embed_dim);
  const std::int64_t samples = x.shape()[0], steps = x.shape()[1];
  const auto rows = [&](Value parameter) {
    return begin == 0 && end == in_rows(config_) ? parameter : slice(parameter, 0, begin, end - begin);
  };
  const Value bias = in_bias_ != nullptr ? rows(g.parameter(*in_bias_)) : Value();
  const Value y = linear(x, rows(g.parameter(in_weight_)), bias);
  return reshape(y, {samples, steps, (end - begin) / width(), width()});
}

Value MultiheadAttention::turned(Value x, std::int64_t heads, Value offset) const {
  if (!config_.rotary) return x;
  RotaryOptions o = *config_.rotary;
  o.heads = heads;
  o.offset = offset;
  return rotary(x, o);
}

Value MultiheadAttention::joined(Value heads) const {
  const std::int64_t samples = heads.shape()[0], steps = heads.shape()[1];
  return out_proj_(reshape(heads, {samples, steps, config_.embed_dim}));
}

Value MultiheadAttention::operator()(Value x, const AttentionMasks& masks) const {
  const Value qkv = turned(projected(x, 0, in_rows(config_)), config_.num_heads + config_.key_heads);
  return joined(self_attention(qkv, config_.num_heads, options(masks)));
}

Value MultiheadAttention::operator()(Value query, Value memory, const AttentionMasks& masks) const {
  const Value q = projected(query, 0, config_.embed_dim);
  const Value kv = projected(memory, config_.embed_dim, in_rows(config_));
  const std::int64_t keys = config_.key_heads;
  return joined(attention(q, slice(kv, 2, 0, keys), slice(kv, 2, keys, keys), options(masks)));
}

Value MultiheadAttention::operator()(Value x, AttentionCache& cache) const {
  const std::int64_t heads = config_.num_heads, keys = config_.key_heads;
  const Value qkv = turned(projected(x, 0, in_rows(config_)), heads + keys, cache.offset);
  const auto written = [&](Value to, std::int64_t first) {
    return write_rows(to, cast(slice(qkv, 2, first, keys), to.dtype()), cache.offset);
  };
  cache.k = written(cache.k, heads);
  cache.v = written(cache.v, heads + keys);
  AttentionOptions o = options({});
  o.causal = true;
  o.offset = cache.offset;
  const Value q = cast(slice(qkv, 2, 0, heads), cache.k.dtype());
  return joined(cast(attention(q, cache.k, cache.v, o), qkv.dtype()));
}

SwiGLU::SwiGLU(const SwiGLUConfig& c)
    : gate_(this, "gate_proj", half_config(c)),
      up_(this, "up_proj", half_config(c)),
      down_(this, "down_proj",
            {.in = c.hidden, .out = c.in, .bias = c.bias, .weight_init = c.out_weight_init, .bias_init = c.bias_init}) {
}

Value SwiGLU::operator()(Value x) const { return down_(silu(gate_(x)) * up_(x)); }

}  // namespace lockstep::nn
