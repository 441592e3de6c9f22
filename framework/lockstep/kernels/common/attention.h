// The part that the kernels of attention share: where queries, keys and values lie, which keys a query sees, and which
// weights dropout keeps. ops/attention.h has the words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/kernel.h"
#include "lockstep/ops/attention.h"

namespace lockstep::kernels {

struct AttentionGeometry : AttentionSizes {
  AttentionGeometry(const KernelRequest& request, const AttentionAttributes& attributes);

  // Elements from one position of a sample to the next.
  std::int64_t query_stride() const { return options.packed ? (heads + 2 * key_heads) * width : heads * width; }
  std::int64_t key_stride() const { return options.packed ? query_stride() : key_heads * width; }
  std::int64_t result_stride() const { return heads * width; }
  std::int64_t group() const { return heads / key_heads; }  // heads that read one key head

  // The numbers of inputs; -1: there is none.
  struct Inputs {
    int lengths = -1, segments = -1, offset = -1, step = -1, ids = -1;
    int result = 0;  // of the gradient: log-sum-exp and dresult lie behind it
  };
  AttentionAttributes options;
  std::vector<double> slopes;  // by head; empty without ALiBi
  Inputs inputs;
  std::string path;
  std::vector<std::string> fields;  // of the inputs; see KernelRequest
};

// The masks and random numbers of one run.
class AttentionRun {
 public:
  // Throws SampleError for a length or an offset out of its range.
  AttentionRun(const AttentionGeometry& geometry, const Arguments& arguments);

  // The position of query 0 of a sample.
  std::int64_t offset(std::int64_t n) const { return offsets_ ? offsets_[n] : g_.keys - g_.queries; }
  // The keys that a query at position p sees, but for segments.
  Range visible(std::int64_t n, std::int64_t p) const {
    Range keys{0, lengths_ ? lengths_[n] : g_.keys};
    if (g_.options.causal) keys.end = std::min(keys.end, p + 1);
    if (g_.options.window > 0)
      keys = intersection(keys, {std::max<std::int64_t>(0, p - g_.options.window + 1), p + g_.options.window});
    return {keys.begin, std::max(keys.begin, keys.end)};
  }
  // The segments of a sample's keys; null without segments.
  const std::int32_t* segments(std::int64_t n) const { return segments_ ? segments_ + n * g_.keys : nullptr; }
  // The second half of the counter of a sample's random numbers.
  std::uint64_t draw(std::int64_t n) const { return mix(step_, static_cast<std::uint64_t>(ids_[n])); }
  // Whether dropout keeps the weight of key s for query t.
  bool keeps(std::int64_t n, std::int64_t h, std::int64_t t, std::int64_t s) const {
    if (g_.options.dropout == 0) return true;
    const auto element = static_cast<std::uint64_t>((h * g_.queries + t) * g_.keys + s);
    return unit_interval(philox(g_.options.key, element / 4, draw(n))[element % 4]) >= g_.options.dropout;
  }

 private:
  const AttentionGeometry& g_;
  const std::int32_t *lengths_ = nullptr, *segments_ = nullptr, *offsets_ = nullptr;
  const std::int64_t* ids_ = nullptr;
  std::uint64_t step_ = 0;
};

// Queries, keys and values, or their gradients, of one kernel's arrays (const T or T).
template <class T>
struct AttentionProjections {
  // `arrays` are pointers to q, k and v, or to qkv.
  template <class Pointer>
  AttentionProjections(const AttentionGeometry& g, const Pointer* arrays)
      : q(static_cast<T*>(arrays[0])),
        k(g.options.packed ? q + g.heads * g.width : static_cast<T*>(arrays[1])),
        v(g.options.packed ? k + g.key_heads * g.width : static_cast<T*>(arrays[2])) {}
  T *q, *k, *v;  // of sample 0, position 0, head 0
};

}  // namespace lockstep::kernels
