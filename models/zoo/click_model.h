// Models of clicks and ratings: dense numbers and ids in, a logit of the label 1 out. And the table of them by name,
// for programs and tools; a new model needs its files and a line in click_model.cpp. All ids are rows of one table,
// which holds the rows of one field after those of the one before.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/nn/module.h"
#include "lockstep/ops/bag.h"

namespace lockstep::models {

struct ClickInputs {
  Value dense;  // (samples, numbers); empty: there are none
  Value ids;    // i32 (samples, columns): rows of the table; a field that is a bag has several columns
};

// A field of ids with several ids, or none, in a sample.
struct BagField {
  std::int64_t field = 0, columns = 0;  // places for ids; those without one have the row `rows` of ClickModelConfig
  BagMode mode = BagMode::Mean;
};

// A call returns logits (samples).
class ClickModel : public nn::Module {
 public:
  virtual Value operator()(const ClickInputs& inputs) const = 0;

  // Adds a buffer of integers, 0 at first, which no call reads: state that travels with the weights.
  void add_state(const std::string& name, std::int64_t numbers);
};

struct ClickModelConfig {
  std::int64_t dense = 0, fields = 0;  // numbers and ids of a sample
  std::int64_t rows = 0;               // of the table, for all fields; with bags the table has one more
  std::vector<BagField> bags{};        // in ascending order of fields
  std::int64_t dim = 16;               // elements of a row
  // Sizes of hidden layers: of the perceptron of dense numbers (DLRM), and of the one behind the interaction, or of the
  // deep part, or of each tower. Empty: the model's default.
  std::vector<std::int64_t> bottom{}, top{};
  bool sparse = false;  // the tables' gradients are rows (docs/tables.md)
  double dropout = 0;   // in [0, 1): behind the hidden layers of `top`
  // Two towers: the fields below this number belong to the user, the other fields to the item.
  std::int64_t user_fields = 1;
  double temperature = 0.1;
  std::vector<double> item_counts{};  // by row: how often items are candidates in training; empty: not counted
};

struct ClickModelEntry {
  std::string name;
  std::string description;
  std::function<std::unique_ptr<ClickModel>(const ClickModelConfig&)> build;
  std::vector<std::string_view> reads{};  // options of train_recsys, beside --dim, --top and --dropout
};

std::span<const ClickModelEntry> click_models();

// Makes the model of this name. Throws Error for an unknown name, and for sizes out of range.
std::unique_ptr<ClickModel> build_click_model(std::string_view name, const ClickModelConfig& config);

}  // namespace lockstep::models
