// A program with sparse tables: it learns which users click, from the user's number and the items that a user bought.
// The facts on which a click depends are drawn here; the best model has a loss of 0 at the end.
//
//   mpirun -n 2 clicks --epochs 8 --table-optimizer adagrad
#include "lockstep/core/random.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/losses/classification.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/concat.h"
#include "lockstep/train/run/program.h"

using namespace lockstep;

namespace {

constexpr std::int64_t kUsers = 100'000, kItems = 50'000, kMostBought = 4;

struct Ranker : nn::Module {
  nn::Child<nn::Embedding> user{this, "user", {.num_embeddings = kUsers, .embedding_dim = 16, .sparse = true}};
  nn::Child<nn::EmbeddingBag> bought{
      this, "bought", {.num_embeddings = kItems, .embedding_dim = 16, .mode = BagMode::Mean, .padding_idx = 0}};
  nn::Child<nn::Linear> out{this, "out", {.in = 32, .out = 1}};
  Value operator()(Value users, Value items) const { return out(concat({user(users), bought(items)}, 1)); }
};

// One of 200 users and up to four of 100 items; users with an even number click.
void write_click(std::uint64_t seed, std::int64_t index, std::span<std::byte* const> sample) {
  RandomStream random(seed, static_cast<std::uint64_t>(index));
  const auto user = static_cast<std::int64_t>(random.uniform(0, 200));
  const auto count = static_cast<std::int64_t>(random.uniform(0, kMostBought + 1));
  *reinterpret_cast<std::int64_t*>(sample[0]) = user;
  auto* items = reinterpret_cast<std::int64_t*>(sample[1]);
  for (std::int64_t i = 0; i < kMostBought; ++i)
    items[i] = i < count ? 1 + static_cast<std::int64_t>(random.uniform(0, 100)) : 0;  // 0: no item
  *reinterpret_cast<float*>(sample[2]) = user % 2 == 0 ? 1 : 0;
}

std::unique_ptr<data::Dataset> clicks(std::int64_t samples, std::uint64_t seed) {
  return std::make_unique<data::FunctionDataset>(data::FunctionDatasetOptions{
      .size = samples,
      .fields = {{"user", Shape{}, DType::I64}, {"items", {kMostBought}, DType::I64}, {"click", {1}, DType::F32}},
      .description = "clicks",
      .read = [seed](std::int64_t index, std::span<std::byte* const> out) { write_click(seed, index, out); }});
}

data::RunData open_clicks(const data::DatasetOptions& options) {
  return {.train = clicks(4096, mix(options.seed, 1)), .eval = clicks(512, mix(options.seed, 2))};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<data::DatasetEntry> own{{.name = "clicks", .description = "made here", .open_all = open_clicks}};
  train::Program program("clicks", "Learns who clicks.",
                         {.dataset = {.name = "clicks"}, .epochs = 8, .batch_size = 64, .rate = {.peak = 0.1}}, own);
  double loss = 1;
  const int status = program.run(argc, argv, [&](train::Session& session) {
    const Ranker network;
    train::Trainer& trainer = session.build(network, [&](const plan::Inputs& in) {
      const Value click = network(in["user"], in["items"]);
      return plan::Traced{.loss = binary_cross_entropy_with_logits(click, in["click"]), .prediction = click};
    });
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
      session.finish_epoch();
    }
    loss = session.evaluate().loss;
  });
  return status != 0 ? status : loss < 0.3 ? 0 : 1;
}
