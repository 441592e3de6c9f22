// Rotary positions (Su et al., "RoFormer", 2021, eq. 34): each pair of elements of a head is turned by an angle that is
// its position times a frequency, so that products of queries and keys depend on distances alone. It can be
// differentiated any number of times.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

struct RotaryOptions {
  double base = 10000;        // pair i of d / 2 turns by base^(-2 i / d) per position
  std::int64_t width = 0;     // d: the first elements of each head that are turned, even; 0: all D
  std::int64_t heads = 0;     // the first heads that are turned; 0: all. Of packed q, k, v (self_attention): H + G
  bool neighbours = false;    // pairs are (2 i, 2 i + 1), as in the paper; else (i, i + d / 2), as in Llama's weights
  double scale = 1;           // of positions: below 1 for longer contexts (Chen et al., "Position interpolation", 2023)
  std::int64_t position = 0;  // of the first element along T
  Value offset = {};          // i32 (N), at least 0: added to `position`, for caches
};

// Returns x (N, T, H, D) turned; element t stands at position + offset + t. Throws Error where shapes, types or options
// do not fit.
Value rotary(Value x, const RotaryOptions& options = {});

// (x (N, T, H, D), [offset i32 (N)]) -> x turned, or turned back if `inverse`.
class RotaryOp : public Op {
 public:
  struct Attributes {
    double base = 10000;
    std::int64_t width = 0, heads = 0;  // not 0
    bool neighbours = false;
    double scale = 1;
    std::int64_t position = 0;
    bool inverse = false;
  };
  explicit RotaryOp(Attributes attributes) : attributes_(attributes) {}
  const Attributes& options() const { return attributes_; }
  std::string_view name() const override { return "rotary"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  Attributes attributes_;
};

}  // namespace lockstep
