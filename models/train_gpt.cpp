// Trains a GPT on text: a built-in corpus whose entropy is known, or files of the user's, as bytes or byte pairs.
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "data/datasets/catalogue.h"
#include "data/datasets/corpus.h"
#include "data/datasets/text_sample.h"
#include "data/datasets/tokenizer.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/log.h"
#include "lockstep/core/math.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/to_floating.h"
#include "lockstep/train/run/program.h"
#include "models/gpt_options.h"

using namespace lockstep;

namespace {

// A metric of the sum of the losses over all positions, in nats, and of another sum.
Metric of_loss(std::string name, const Loss& loss, Value other,
               double (*finish)(double nats, double other, double fact), double fact = 0) {
  Metric metric{.rule = {.name = std::move(name), .better = Better::Lower}};
  const Value weight = cast(loss.weight, DType::F64);
  metric.sums = {cast(loss.mean, DType::F64) * weight, other ? other : weight};
  metric.rule.finish = [finish, fact](std::span<const double> sums, double /*samples*/, std::span<double> results) {
    results[0] = finish(sums[0], sums[1], fact);
  };
  return metric;
}

struct Task {
  double label_smoothing = 0;       // in training
  bool predicts = false;            // the logits of the token behind each sample
  std::optional<double> entropy{};  // the least mean loss, if it is known
};

plan::Traced trace(const models::Gpt& network, const Task& task, const plan::Inputs& in) {
  const Value tokens = in["tokens"];
  const bool training = tokens.graph().training();
  if (task.predicts && !training) return {.prediction = network.next_logits(tokens)};
  const VocabularyLoss found = network.loss(tokens, in["targets"], training ? task.label_smoothing : 0);
  plan::Traced traced{.loss = found.loss};
  const auto ratio = [](double nats, double positions, double) { return math::exp(nats / positions); };
  traced.metrics.push_back(of_loss("perplexity", found.loss, {}, ratio));
  const Value bytes = sum(to_floating(in["bytes"], DType::F64));
  traced.metrics.push_back(of_loss("bits_per_byte", found.loss, bytes,
                                   [](double nats, double count, double) { return nats / std::numbers::ln2 / count; }));
  Metric accuracy =
      of_loss("accuracy", found.loss, {}, [](double right, double count, double) { return right / count; });
  accuracy.sums[0] = found.correct;
  accuracy.rule.better = Better::Higher;
  accuracy.rule.form = MetricForm::Percent;
  traced.metrics.push_back(std::move(accuracy));
  if (task.entropy) {
    const auto gap = [](double nats, double count, double entropy) { return nats / count / entropy - 1; };
    traced.metrics.push_back(of_loss("entropy_gap", found.loss, {}, gap, *task.entropy));
    traced.metrics.back().rule.form = MetricForm::Percent;
  }
  return traced;
}

void announce(const datasets::Tokenizer& tokenizer, const Task& task) {
  log()->info("text: {}", tokenizer.describe());
  if (task.entropy)
    log()->info(
        "text: the entropy of the samples is {:.5f} nats, or {:.5f} bits, for each byte; that of endless text {:.5f} "
        "bits",
        *task.entropy, datasets::in_bits(*task.entropy), datasets::in_bits(datasets::corpus_source().entropy_rate()));
}

train::Options defaults() {
  // Those of GPT-3 (Brown et al., "Language models are few-shot learners", 2020, appendix B), with a rate for small
  // models.
  return {.dataset = {.name = "corpus"},
          .epochs = 4,
          .batch_size = 16,
          .optimizer = {.rule = optim::Rule::AdamW, .adam = {.beta2 = 0.95}},
          .rate = {.peak = 1e-3, .warmup_epochs = 0.5},
          .trainer = {.update = {.weight_decay = 0.1, .decay_biases_and_norms = false}, .clip_norm = 1}};
}

}  // namespace

int main(int argc, char** argv) {
  models::GptOptions options;
  const std::vector<data::DatasetEntry> entries = datasets::text_catalogue(options.text);
  train::Program program("train_gpt", "Trains a GPT on text.", defaults(), entries);
  models::for_each_option(options, [&](const char* name, auto& value, const char* text, const char* argument = "") {
    program.option(name, value, text, {}, argument);
  });
  bool decay_embeddings = false;
  program.option("decay-embeddings", decay_embeddings, "embeddings have weight decay, as nanoGPT's");
  program.check([&] {
    if (!decay_embeddings)
      program.options().trainer.update.groups = {{.pattern = "transformer.w?e.weight", .weight_decay = 0}};
  });
  return program.run(argc, argv, [&](train::Session& session) {
    const auto tokenizer =
        comm::collectively(session.comm(), [&] { return datasets::open_tokenizer(options.text.vocabulary); });
    const models::Gpt network(options.config(tokenizer->size()));
    Task task{.label_smoothing = session.options().label_smoothing,
              .predicts = session.options().purpose() == data::Purpose::Predict};
    if (session.options().dataset.name == "corpus")
      task.entropy = datasets::corpus_source().entropy_from_start(options.text.context);
    train::Trainer& trainer = session.build(network, [&](const plan::Inputs& in) { return trace(network, task, in); });
    if (session.comm().is_root()) announce(*tokenizer, task);

    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        session.report(trainer.step(batch, session.learning_rate()));  // forward, backward, reduction, update
      }
      session.finish_epoch();  // evaluation, checkpoint
    }
  });
}
