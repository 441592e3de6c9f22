// Tables of learned rows: values, gradients with and without a padding row, initial values, and indices that are wrong.
#include "lockstep/nn/embedding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/nn/init.h"
#include "lockstep/ops/gradient.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/plan/compiled_model.h"
#include "tests/messages.h"

namespace lockstep::nn {
namespace {

constexpr std::int64_t kRows = 7, kWidth = 3;

struct EmbeddingModel : Module {
  Child<Embedding> tokens;
  explicit EmbeddingModel(std::optional<std::int64_t> padding)
      : tokens(this, "tokens",
               EmbeddingConfig{.num_embeddings = kRows, .embedding_dim = kWidth, .padding_idx = padding}) {}
};

// The loss is the sum of weight * row^2 over all indices.
struct Training {
  EmbeddingModel model;
  plan::CompiledModel compiled;
  plan::Plan& plan;

  explicit Training(std::optional<std::int64_t> padding = {}, bool penalty = false)
      : model(padding),
        compiled(model.named_parameters(),
                 [this, penalty](const plan::Inputs& in) {
                   const Value rows = model.tokens(in["ids"]);
                   const Value energy = sum(rows * rows * rows * in["weight"]);
                   const Value one = fill(in.graph(), {Shape{}, DType::F64}, 1);
                   if (!penalty) return plan::Traced{.loss = {energy, one}, .prediction = rows};
                   const Value slope = gradient(energy, in.graph().parameter(model.tokens.weight()));
                   return plan::Traced{.loss = {sum(slope * slope), one}, .prediction = rows};
                 },
                 {.dtype = DType::F64, .seed = 3}),
        plan(compiled.plan(Mode::Train,
                           {{"ids", {Shape{2, 4}, DType::I32}}, {"weight", {Shape{2, 4, 1}, DType::F64}}})) {}

  void run(const std::vector<std::int32_t>& ids) {
    std::ranges::copy(ids, static_cast<std::int32_t*>(plan.input("ids")));
    auto* const weight = static_cast<double*>(plan.input("weight"));
    for (int i = 0; i < 8; ++i) weight[i] = 0.5 + 0.25 * i;
    plan.run();
  }
  std::vector<double> table() const {
    const Tensor t = compiled.parameters().read("tokens.weight");
    return {t.data<double>().begin(), t.data<double>().end()};
  }
};

const std::vector<std::int32_t> kIds{1, 4, 1, 0, 6, 2, 4, 1};

TEST(Embedding, IsRowsOfTheTable) {
  Training run;
  run.run(kIds);
  const std::vector<double> table = run.table();
  const Tensor y = run.plan.prediction();
  ASSERT_EQ(y.shape(), (Shape{2, 4, kWidth}));
  for (std::size_t i = 0; i < 24; ++i)
    EXPECT_EQ(y.data<double>()[i], table[static_cast<std::size_t>(kIds[i / 3]) * 3 + i % 3]);
}

// d/dw of sum of weight * w^3 over the uses of a row; nothing for the padding row.
std::vector<double> expected_slope(const std::vector<double>& table, std::int64_t padding) {
  std::vector<double> slope(table.size());
  for (std::size_t i = 0; i < kIds.size(); ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      const std::size_t at = static_cast<std::size_t>(kIds[i]) * 3 + c;
      if (kIds[i] != padding) slope[at] += 3 * table[at] * table[at] * (0.5 + 0.25 * static_cast<double>(i));
    }
  }
  return slope;
}

TEST(Embedding, AddsGradientsOfEachRowButThePaddingRow) {
  for (const auto& [padding, row] : {std::pair<std::optional<std::int64_t>, std::int64_t>{{}, -1}, {4, 4}, {-6, 1}}) {
    Training run(padding);
    run.run(kIds);
    const std::vector<double> want = expected_slope(run.table(), row);
    const Tensor got = run.compiled.parameters().read_gradient("tokens.weight");
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.data<double>()[i], want[i], 1e-14) << i;
  }
}

// The gradient of |slope|^2: 2 slope * d slope / dw, where the padding row still has none.
TEST(Embedding, CanBeDifferentiatedAgainWithAPaddingRow) {
  Training run(1, true);
  run.run(kIds);
  const std::vector<double> table = run.table(), slope = expected_slope(table, 1);
  const Tensor got = run.compiled.parameters().read_gradient("tokens.weight");
  for (std::size_t at = 0; at < table.size(); ++at) {
    const double curvature = table[at] == 0 ? 0 : 2 * slope[at] / table[at];
    EXPECT_NEAR(got.data<double>()[at], 2 * slope[at] * curvature, 1e-11) << at;
  }
}

TEST(Embedding, StartsAsPyTorchs) {
  EmbeddingConfig config{.num_embeddings = 200, .embedding_dim = 50, .padding_idx = -1};
  const Embedding table(std::move(config));
  const Parameter& weight = table.weight();
  EXPECT_EQ(weight.shape, (Shape{200, 50}));
  std::vector<double> values(10000);
  RandomStream random(3, 4);
  weight.initialize(weight.shape, values, random);
  double square = 0;
  for (std::size_t i = 0; i < 9950; ++i) square += values[i] * values[i] / 9950;
  EXPECT_NEAR(square, 1, 0.06);
  for (std::size_t i = 9950; i < 10000; ++i) EXPECT_EQ(values[i], 0);
  EXPECT_EQ(EmbeddingModel(std::nullopt).named_parameters()[0].name, "tokens.weight");
}

TEST(Embedding, StartsWithAPaddingRowOfZerosWhateverItsInitializerWrites) {
  const Embedding table(
      EmbeddingConfig{.num_embeddings = 3, .embedding_dim = 2, .padding_idx = 1, .weight_init = constant(5)});
  std::vector<double> values(6);
  RandomStream random(3, 4);
  table.weight().initialize(table.weight().shape, values, random);
  EXPECT_EQ(values, (std::vector<double>{5, 5, 0, 0, 5, 5}));
}

TEST(Embedding, RefusesAPaddingRowThatIsNotThere) {
  EXPECT_EQ(error_of([] { EmbeddingModel model(kRows); }),
            "[embedding] the padding row is 7, expected -7 to 6, as the table has 7 rows");
}

TEST(Embedding, NamesRowPositionAndValueOfAWrongIndex) {
  for (const std::int32_t wrong : {-1, 7}) {
    Training run;
    std::vector<std::int32_t> ids = kIds;
    ids[6] = wrong;
    try {
      run.run(ids);
      FAIL() << wrong << " was accepted";
    } catch (const SampleError& e) {
      EXPECT_EQ(e.row(), 1);
      EXPECT_EQ(std::string(e.what()),
                formatted("[embedding] tokens: 'ids' of row 1 of the batch at position (2) is {}, expected 0 to 6: the "
                          "table has 7 rows",
                          wrong));
      EXPECT_EQ(std::string(e.of("sample 4711").what()),
                formatted("[embedding] tokens: 'ids' of sample 4711 at position (2) is {}, expected 0 to 6: the table "
                          "has 7 rows",
                          wrong));
    }
  }
}

TEST(IndexSelect, NamesTheAxisOfAWrongIndex) {
  EmbeddingModel model(std::nullopt);
  plan::CompiledModel compiled(model.named_parameters(), [](const plan::Inputs& in) {
    return plan::Traced{.prediction = index_select(in["x"], 1, in["which"])};
  });
  plan::Plan& plan = compiled.plan(Mode::Eval, {{"x", {Shape{2, 3}, DType::F32}}, {"which", {Shape{2}, DType::I32}}});
  static_cast<std::int32_t*>(plan.input("which"))[0] = 2;
  static_cast<std::int32_t*>(plan.input("which"))[1] = 3;
  EXPECT_EQ(error_of([&] { plan.run(); }),
            "[index_select] (model): 'which' of row 1 of the batch is 3, expected 0 to 2: axis 1 has 3 elements");
}

}  // namespace
}  // namespace lockstep::nn
