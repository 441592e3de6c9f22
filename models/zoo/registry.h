// Models by name, for tools, benches and programs that take any of them. The table is explicit: a model is its files
// and its line.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "models/zoo/classifier.h"

namespace lockstep::models {

struct ModelEntry {
  std::string name;
  std::string description;
  Shape image;           // of one sample, unless another is asked for
  std::int64_t classes;  // likewise
  std::function<std::unique_ptr<Classifier>(std::int64_t classes, const Shape& image)> build;
};

std::span<const ModelEntry> model_table();

// Throws Error listing the names there are.
const ModelEntry& find_model(std::string_view name);

// The model of that name; 0 classes and an empty shape stand for the entry's own. Throws Error for a name or a shape
// that the model cannot take.
std::unique_ptr<Classifier> build_model(std::string_view name, std::int64_t classes = 0, const Shape& image = {});

}  // namespace lockstep::models
