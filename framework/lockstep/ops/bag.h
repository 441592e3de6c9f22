// Bags of rows: the sum, the mean or the largest element over the entries of a bag, as torch.nn.EmbeddingBag. A bag has
// a capacity, K entries, that is known when the model is compiled; the number of entries in use comes with the batch.
#pragma once

#include <optional>

#include "lockstep/graph/graph.h"

namespace lockstep {

enum class BagMode : std::uint8_t { Sum, Mean, Max };

// (x (N, K, E), use) -> (N, E). `use` is either the ids (N, K), i32 or i64, of which those equal to `padding` are left
// out, or, without `padding`, the counts (N), i32 or i64, of the first entries that are used. Sums are in f64, in the
// order of the entries. A bag without entries gives 0. The gradient of Max goes to the first of equal entries.
class BagOp : public Op {
 public:
  BagOp(BagMode mode, std::optional<std::int64_t> padding) : mode_(mode), padding_(padding) {}
  BagMode mode() const { return mode_; }
  std::optional<std::int64_t> padding() const { return padding_; }
  std::string_view name() const override { return mode_ == BagMode::Max ? "bag_max" : "bag"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  BagMode mode_;
  std::optional<std::int64_t> padding_;
};

// (dy (N, E), x (N, K, E), use) -> dx (N, K, E); 0 for entries that are not used.
class BagGradientOp : public Op {
 public:
  BagGradientOp(BagMode mode, std::optional<std::int64_t> padding) : mode_(mode), padding_(padding) {}
  BagMode mode() const { return mode_; }
  std::optional<std::int64_t> padding() const { return padding_; }
  std::string_view name() const override { return mode_ == BagMode::Max ? "bag_max_gradient" : "bag_gradient"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  BagMode mode_;
  std::optional<std::int64_t> padding_;
};

// Returns the bags of x (N, K, E): entries whose id is `padding` are left out, in the first function; the second one
// uses the first counts[n] entries of bag n. Throws Error where types do not fit. When the plan runs, a count outside
// [0, K] throws SampleError, which names row and value.
Value bag_of_ids(Value x, Value ids, std::int64_t padding, BagMode mode);
Value bag_of_counts(Value x, Value counts, BagMode mode);

}  // namespace lockstep
