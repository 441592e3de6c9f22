#include "models/zoo/field_model.h"

#include <algorithm>
#include <vector>

#include "lockstep/core/error.h"
#include "models/zoo/cosmoflow.h"
#include "models/zoo/field_cnn.h"
#include "models/zoo/field_mlp.h"
#include "models/zoo/field_resnet.h"
#include "models/zoo/fno.h"
#include "models/zoo/series.h"
#include "models/zoo/series_encoder.h"
#include "models/zoo/unet.h"
#include "models/zoo/vae.h"

namespace lockstep::models {
namespace {

std::string_view series_advice(const FieldModelConfig& config) {
  return config.series
             ? "; with --series, where features are behind the time, expected --model lstm, gru, tcn or encoder"
             : "";
}

}  // namespace

std::span<const FieldModelEntry> field_models() {
  static const std::vector<FieldModelEntry> table{
      field_mlp_entry(), field_cnn_entry(), field_resnet_entry(), autoencoder_entry(), vae_entry(), unet_entry(),
      fno_entry(),       cosmoflow_entry(), lstm_entry(),         gru_entry(),         tcn_entry(), encoder_entry()};
  return table;
}

std::unique_ptr<FieldModel> build_field_model(std::string_view name, const FieldModelConfig& config) {
  const auto table = field_models();
  const auto entry = std::ranges::find(table, name, &FieldModelEntry::name);
  if (entry == table.end()) {
    std::string names;
    for (const FieldModelEntry& known : table) names += (names.empty() ? "" : ", ") + known.name;
    fail("models", "there is no model '{}' for fields, expected one of {}", name, names);
  }
  check(config.input.rank() >= 1 && config.output.rank() >= 1, name,
        "a sample's input is {} and its target {}, expected at least one dimension each", config.input.str(),
        config.output.str());
  check(config.width >= 0 && config.depth >= 0 && config.modes >= 0 && config.latent >= 0, name,
        "width {}, depth {}, modes {}, latent {}: expected at least 0 (the model's default)", config.width,
        config.depth, config.modes, config.latent);
  check(config.dropout >= 0 && config.dropout < 1 && config.kl_weight >= 0, name,
        "dropout {} and weight {} of the divergence, expected a number in [0, 1) and at least 0", config.dropout,
        config.kl_weight);
  return entry->build(config);
}

int spatial_axes(std::string_view site, const FieldModelConfig& config) {
  const int axes = config.input.rank() - 1;
  check(axes >= 1 && axes <= 3 && config.output.rank() == config.input.rank() &&
            config.input.tail() == config.output.tail(),
        site, "a sample's input is {} and its target {}, expected (channels, 1 to 3 sizes) with equal sizes{}",
        config.input.str(), config.output.str(), series_advice(config));
  return axes;
}

int spatial_axes_of_input(std::string_view site, const FieldModelConfig& config) {
  const int axes = config.input.rank() - 1;
  check(axes >= 1 && axes <= 3, site, "a sample's input is {}, expected (channels, 1 to 3 sizes){}", config.input.str(),
        series_advice(config));
  return axes;
}

}  // namespace lockstep::models
