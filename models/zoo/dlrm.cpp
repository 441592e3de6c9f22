#include "models/zoo/dlrm.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pair_products.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::models {
namespace {

const ClickModelConfig& checked(const ClickModelConfig& c) {
  check(c.fields + (c.dense > 0 ? 1 : 0) >= 2, "dlrm", "{} field of ids and no dense numbers, expected a pair",
        c.fields);
  return c;
}

ClickMlp::Config top_of(const ClickModelConfig& c) {
  const std::int64_t vectors = c.fields + (c.dense > 0 ? 1 : 0);
  const std::int64_t inputs = vectors * (vectors - 1) / 2 + (c.dense > 0 ? c.dim : 0);
  const std::vector<std::int64_t> hidden = c.top.empty() ? std::vector<std::int64_t>{128, 64} : c.top;
  return {.sizes = layer_sizes(inputs, hidden, 1), .dropout = c.dropout};
}

}  // namespace

Dlrm::Dlrm(const ClickModelConfig& c)
    : fields_(checked(c)), table_(this, "table", table_of(c, c.dim, table_init(c))), top_(this, "top", top_of(c)) {
  if (c.dense == 0) return;
  const std::vector<std::int64_t> hidden = c.bottom.empty() ? std::vector<std::int64_t>{64, 32} : c.bottom;
  bottom_ = std::make_unique<nn::Child<ClickMlp>>(
      this, "bottom", ClickMlp::Config{.sizes = layer_sizes(c.dense, hidden, c.dim), .last_relu = true});
}

Dlrm::~Dlrm() = default;

// The perceptron of the dense numbers comes before the lookups: it is computed while rows of other ranks are on their
// way, and its gradient while gradients of rows are.
Value Dlrm::operator()(const ClickInputs& in) const {
  const Value bottom = bottom_ != nullptr ? (*bottom_)(in.dense) : Value();
  const Value rows = fields_.vectors(table_(in.ids), in.ids);  // (samples, fields, dim)
  if (bottom_ == nullptr) return squeeze(top_(pair_products(rows)), 1);
  const Value dense = cast(bottom, rows.dtype());  // rows are no products, which may be bf16
  const Value pairs = pair_products(concat({unsqueeze(dense, 1), rows}, 1));
  return squeeze(top_(concat({dense, pairs}, 1)), 1);
}

ClickModelEntry dlrm_entry() {
  return {.name = "dlrm",
          .description =
              "products of pairs of ids' rows and a perceptron of the dense numbers, then a perceptron; "
              "--bottom 64,32, --top 128,64",
          .build = [](const ClickModelConfig& c) -> std::unique_ptr<ClickModel> { return std::make_unique<Dlrm>(c); },
          .reads = {"bottom"}};
}

}  // namespace lockstep::models
