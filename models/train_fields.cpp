// Trains a model that maps fields to fields, or rows of tables to numbers, on arrays of the user's files.
#include <string>
#include <vector>

#include "data/datasets/catalogue.h"
#include "lockstep/core/error.h"
#include "lockstep/losses/regression.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/train/run/program.h"
#include "models/zoo/field_model.h"

using namespace lockstep;

namespace {

enum class LossOption : std::uint8_t { Mse, L1, Huber, RelativeL2 };

Loss loss_of(LossOption loss, Value prediction, Value target) {
  switch (loss) {
    case LossOption::L1:
      return l1_loss(prediction, target);
    case LossOption::Huber:
      return huber_loss(prediction, target);
    case LossOption::RelativeL2:
      return relative_l2_loss(prediction, target);
    case LossOption::Mse:
      break;
  }
  return mean_squared_error(prediction, target);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const models::FieldModelEntry& entry : models::field_models()) names.push_back(entry.name);
  return names;
}

std::string model_text() {
  std::string text = "the network:";
  for (const models::FieldModelEntry& entry : models::field_models())
    text += formatted("{} {} ({})", &entry == models::field_models().data() ? "" : ";", entry.name, entry.description);
  return text;
}

}  // namespace

template <>
struct lockstep::train::Choices<LossOption> {
  static constexpr std::array kAll{NamedValue{LossOption::Mse, "mse"}, NamedValue{LossOption::L1, "l1"},
                                   NamedValue{LossOption::Huber, "huber"},
                                   NamedValue{LossOption::RelativeL2, "relative-l2"}};
};

int main(int argc, char** argv) {
  train::Program program("train_fields", "Trains a model of fields or tables on arrays of your files.",
                         {.dataset = {.name = "hdf5"},
                          .epochs = 50,
                          .batch_size = 16,
                          .optimizer = {.rule = optim::Rule::AdamW},
                          .rate = {.peak = 1e-3, .warmup_epochs = 1}},
                         datasets::field_catalogue());
  std::string model = "unet";
  models::FieldModelConfig config;
  LossOption loss = LossOption::Mse;
  program.option("model", model, model_text(), model_names());
  program.option("width", config.width, "channels, or features, of the model's first layer inside; 0: the model's own");
  program.option("depth", config.depth, "layers of the model, or levels of resolution; 0: the model's own");
  program.option("modes", config.modes, "frequencies per axis that a Fourier layer keeps; 0: the model's own");
  program.option("latent", config.latent, "numbers in the middle of --model vae; 0: the model's own");
  program.option("dropout", config.dropout, "probability of dropout in cosmoflow, lstm, gru (between layers) and tcn");
  program.option("kl-weight", config.kl_weight, "of the divergence in the loss of --model vae");
  program.option("loss", loss, "mse, l1, huber, or relative-l2 (of each sample: |prediction - target| / |target|)");
  return program.run(argc, argv, [&](train::Session& session) {
    config.input = session.data().shape_of("input");
    config.output = session.data().shape_of("target");
    const auto network = models::build_field_model(model, config);
    train::Trainer& trainer = session.build(*network, [&](const plan::Inputs& in) {
      const auto [prediction, penalty] = network->with_penalty(in["input"]);
      const Value target = in["target"];
      plan::Traced traced{
          .loss = loss_of(loss, prediction, target),
          .metrics = {metrics::root_mean_squared_error(prediction, target), metrics::r_squared(prediction, target)},
          .prediction = prediction};
      if (penalty) {
        traced.loss.mean = traced.loss.mean + penalty;
        const double samples = static_cast<double>(prediction.shape()[0]);
        traced.metrics.push_back(metrics::mean_of("penalty", cast(penalty, DType::F64) * samples, Better::Lower));
      }
      return traced;
    });
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        session.report(trainer.step(batch, session.learning_rate()));  // forward, backward, reduction, update
      }
      session.finish_epoch();  // evaluation, checkpoint
    }
  });
}
