// The subjects that bench_step trains, by name: a classifier of the zoo on images and labels, a field model in a fixed
// size with the mean squared error, a GPT of 6 blocks, 384 wide, on 256 bytes, or a DLRM with 26 tables of 100,000
// rows. bench/torch_fields.py, bench/torch_sequences.py and bench/torch_clicks.py have the same models in PyTorch.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/losses/classification.h"
#include "lockstep/losses/regression.h"
#include "models/zoo/classify.h"
#include "models/zoo/click_task.h"
#include "models/zoo/field_model.h"
#include "models/zoo/gpt.h"
#include "models/zoo/registry.h"

namespace lockstep::bench {

struct Subject {
  std::vector<data::Field> fields;  // of a batch
  std::int64_t classes = 0;         // of the field "label", if there is one
  std::unique_ptr<nn::Module> network;
  plan::ModelFunction function;
  double rate = 0.1;      // of learning, at which the loss stays finite
  double momentum = 0.9;  // of SGD
  double weight_decay = 1e-4;
  std::int64_t rows_per_field =
      0;  // above 0: ids of field f are rows f rows_per_field and following, labels are 0 or 1
};

struct FieldSubject {
  const char* name;
  const char* model;
  models::FieldModelConfig config;
};

inline const std::vector<FieldSubject>& field_subjects() {
  static const std::vector<FieldSubject> table{
      {"unet-2d", "unet", {.input = {3, 64, 64}, .output = {1, 64, 64}, .width = 32, .depth = 4}},
      {"unet-3d", "unet", {.input = {1, 32, 32, 32}, .output = {1, 32, 32, 32}, .width = 16, .depth = 3}},
      {"cosmoflow", "cosmoflow", {.input = {4, 64, 64, 64}, .output = {4}, .width = 32, .depth = 5}},
      {"lstm", "lstm", {.input = {64, 8}, .output = {8}, .width = 128, .depth = 2}},
      {"fno", "fno", {.input = {1, 64, 64}, .output = {1, 64, 64}, .width = 32, .depth = 4, .modes = 12}},
  };
  return table;
}

inline Subject gpt_subject() {
  const models::GptConfig config{.layers = 6, .heads = 6, .width = 384};
  auto network = std::make_unique<models::Gpt>(config);
  plan::ModelFunction function = [model = network.get()](const plan::Inputs& in) {
    return plan::Traced{.loss = model->loss(in["tokens"], in["targets"]).loss};
  };
  return {.fields = {{"tokens", {config.context}, DType::I32}, {"targets", {config.context}, DType::I32}},
          .classes = config.vocabulary,
          .network = std::move(network),
          .function = std::move(function)};
}

// DLRM in the sizes of train_recsys, by plain SGD: 13 dense numbers, and the rows of 26 fields in a sparse table.
inline Subject dlrm_subject(DType floats) {
  constexpr std::int64_t kFields = 26, kRows = 100000;
  const models::ClickModelConfig config{
      .dense = 13, .fields = kFields, .rows = kFields * kRows, .dim = 16, .sparse = true};
  std::unique_ptr<models::ClickModel> network = models::build_click_model("dlrm", config);
  plan::ModelFunction function = [model = network.get()](const plan::Inputs& in) {
    const Value logits = (*model)(models::click_inputs(in, true));
    return plan::Traced{.loss = binary_cross_entropy_with_logits(logits, in["label"]), .prediction = logits};
  };
  return {.fields = {{"dense", {config.dense}, floats}, {"ids", {kFields}, DType::I32}, {"label", {}, floats}},
          .classes = kRows,
          .network = std::move(network),
          .function = std::move(function),
          .momentum = 0,
          .weight_decay = 0,
          .rows_per_field = kRows};
}

// Makes the subject of this name; images and fields have this floating type. Throws Error for an unknown name.
inline Subject make_subject(const std::string& name, DType floats) {
  for (const FieldSubject& s : field_subjects()) {
    if (s.name != name) continue;
    auto network = models::build_field_model(s.model, s.config);
    plan::ModelFunction function = [model = network.get()](const plan::Inputs& in) {
      const Value prediction = (*model)(in["input"]);
      return plan::Traced{.loss = mean_squared_error(prediction, in["target"]), .prediction = prediction};
    };
    return {.fields = {{"input", s.config.input, floats}, {"target", s.config.output, floats}},
            .network = std::move(network),
            .function = std::move(function),
            .rate = 1e-3};
  }
  if (name == "gpt") return gpt_subject();
  if (name == "dlrm") return dlrm_subject(floats);
  const models::ModelEntry& entry = models::find_model(name);
  auto network = models::build_model(name);
  plan::ModelFunction function = models::classify(*network);
  return {.fields = {{"image", entry.image, floats}, {"label", {}, DType::I32}},
          .classes = entry.classes,
          .network = std::move(network),
          .function = std::move(function)};
}

}  // namespace lockstep::bench
