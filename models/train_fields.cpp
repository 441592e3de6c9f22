// Trains a model that maps fields to fields, or rows of tables to numbers, on arrays of the user's files.
#include <algorithm>
#include <string>
#include <vector>

#include "data/datasets/catalogue.h"
#include "data/datasets/field_record.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/losses/per_sample.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/train/run/program.h"
#include "models/model_choice.h"
#include "models/zoo/field_loss.h"
#include "models/zoo/field_model.h"

using namespace lockstep;

namespace {

void check_series(const std::string& model, bool series) {
  const auto entry = std::ranges::find(models::field_models(), model, &models::FieldModelEntry::name);
  check(series || entry == models::field_models().end() || !entry->needs_series, "options",
        "--model {} reads series, expected --series with inputs (samples, time) or (samples, time, features)", model);
}

}  // namespace

template <>
struct lockstep::train::Choices<models::FieldLoss> {
  using Loss = models::FieldLoss;
  static constexpr std::array kAll{NamedValue{Loss::Auto, "auto"},
                                   NamedValue{Loss::Mse, "mse"},
                                   NamedValue{Loss::L1, "l1"},
                                   NamedValue{Loss::Huber, "huber"},
                                   NamedValue{Loss::RelativeL2, "relative-l2"},
                                   NamedValue{Loss::GaussianNll, "gaussian-nll"},
                                   NamedValue{Loss::CrossEntropy, "cross-entropy"},
                                   NamedValue{Loss::Dice, "dice"},
                                   NamedValue{Loss::Bce, "bce"},
                                   NamedValue{Loss::Focal, "focal"}};
};

namespace {

struct Settings {
  std::string model = "unet";
  models::FieldModelConfig config{};
  models::FieldLossOptions task{.loss = models::FieldLoss::Auto};
  std::string class_weights{};
};

void add_options(train::Program& program, Settings& s) {
  program.option("model", s.model, models::model_text(models::field_models()),
                 models::model_names(models::field_models()));
  program.option("width", s.config.width,
                 "channels, or features, of the model's first layer inside; 0: the model's own");
  program.option("depth", s.config.depth, "layers of the model, or levels of resolution; 0: the model's own");
  program.option("modes", s.config.modes, "frequencies per axis that a Fourier layer keeps; 0: the model's own");
  program.option("latent", s.config.latent, "numbers in the middle of --model vae; 0: the model's own");
  program.option("dropout", s.config.dropout,
                 "probability of dropout in cosmoflow, lstm, gru (between layers), tcn and encoder");
  program.option("kl-weight", s.config.kl_weight, "of the divergence in the loss of --model vae");
  program.option("loss", s.task.loss,
                 "of numbers: mse, l1, huber, relative-l2 (of each sample: |prediction - target| / |target|), "
                 "gaussian-nll (the model predicts a variance, too); of classes, integers from 0 on: cross-entropy, "
                 "dice; of targets 0 or 1: bce, focal; auto: mse, or cross-entropy with --label");
  program.option("class-weights", s.class_weights,
                 "how much classes count in cross-entropy, or positive targets of each channel in bce: numbers with "
                 "commas between them, or balanced (classes count equally, however rare)");
  program.option("focal-gamma", s.task.focal_gamma, "exponent by which the loss focal lowers what is easy");
}

// Refuses values that the training would not read.
void check_are_read(const Settings& s) {
  const Settings standard;
  const auto look = [&](std::string_view option, auto models::FieldModelConfig::*member) {
    models::check_is_read(models::field_models(), s.model, option, s.config.*member, standard.config.*member);
  };
  look("modes", &models::FieldModelConfig::modes);
  look("latent", &models::FieldModelConfig::latent);
  look("dropout", &models::FieldModelConfig::dropout);
  look("kl-weight", &models::FieldModelConfig::kl_weight);
  check(s.task.loss == models::FieldLoss::Focal || s.task.focal_gamma == standard.task.focal_gamma, "options",
        "--focal-gamma is {}, which --loss {} does not read; it is for focal", s.task.focal_gamma,
        train::choice_name(s.task.loss));
}

// Settles what follows from other options.
void settle(train::Options& options, Settings& s) {
  data::FieldOptions& fields = options.dataset.fields;
  const bool trains = options.purpose() == data::Purpose::Train;
  if (trains) check_series(s.model, fields.series);
  if (s.task.loss == models::FieldLoss::Auto)
    s.task.loss = fields.label.empty() ? models::FieldLoss::Mse : models::FieldLoss::CrossEntropy;
  if (trains) check_are_read(s);
  fields.target = models::target_kind(s.task.loss);
  check(options.label_smoothing == 0 || s.task.loss == models::FieldLoss::CrossEntropy, "options",
        "--label-smoothing is {} with --loss {}, expected 0, or --loss cross-entropy", options.label_smoothing,
        train::choice_name(s.task.loss));
  s.task.label_smoothing = options.label_smoothing;
}

// Settles what follows from the data.
void settle(const train::Session& session, Settings& s) {
  const data::RunData& data = session.data();
  const train::Options& options = session.options();
  s.task.ignore_index = static_cast<std::int32_t>(options.dataset.fields.ignore_index);
  s.task.class_names = data.labels.names;
  s.task.class_weights =
      comm::collectively(session.comm(), [&] { return models::class_weights(s.class_weights, s.task.loss, data); });
  if (options.purpose() != data::Purpose::Predict)
    s.task.units = datasets::units_of(datasets::FieldRecord::parse(data.prediction.record), s.task.channel_axis);
  s.config.input = data.shape_of("input");
  s.config.series = options.dataset.fields.series;
  s.config.output = models::output_shape(s.task.loss, data);
}

plan::Traced trace(const models::FieldModel& network, const models::FieldLossOptions& task, const plan::Inputs& in) {
  const auto [output, penalty] = network.with_penalty(in["input"]);
  plan::Traced traced = models::field_task(task, output, in["target"]);
  if (!penalty) return traced;
  // A mean over samples, as the penalty is: a mean by weights does not add to it alike on all shards.
  if (traced.loss.weight) traced.loss = per_sample(traced.loss, in["input"]);
  traced.loss.mean = traced.loss.mean + penalty;
  const double samples = static_cast<double>(output.shape()[0]);
  traced.metrics.push_back(metrics::mean_of("penalty", cast(penalty, DType::F64) * samples, Better::Lower));
  return traced;
}

}  // namespace

int main(int argc, char** argv) {
  train::Program program("train_fields", "Trains a model of fields or tables on arrays of your files.",
                         {.dataset = {.name = "hdf5"},
                          .epochs = 50,
                          .batch_size = 16,
                          .optimizer = {.rule = optim::Rule::AdamW},
                          .rate = {.peak = 1e-3, .warmup_epochs = 1}},
                         datasets::field_catalogue());
  Settings settings;
  add_options(program, settings);
  program.check([&] { settle(program.options(), settings); });
  return program.run(argc, argv, [&](train::Session& session) {
    settle(session, settings);
    const auto network = models::build_field_model(settings.model, settings.config);
    train::Trainer& trainer =
        session.build(*network, [&](const plan::Inputs& in) { return trace(*network, settings.task, in); });
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        session.report(trainer.step(batch, session.learning_rate()));  // forward, backward, reduction, update
      }
      session.finish_epoch();  // evaluation, checkpoint
    }
  });
}
