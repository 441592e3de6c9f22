// The table of models by name, for tools, benches and programs that take any model. A new model needs its files and a
// line in registry.cpp.
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
  Shape image;           // default shape of one sample
  std::int64_t classes;  // default number of classes
  std::function<std::unique_ptr<Classifier>(std::int64_t classes, const Shape& image)> build;
};

std::span<const ModelEntry> model_table();

// Returns the entry of this name. Throws Error that lists the names if there is none.
const ModelEntry& find_model(std::string_view name);

// Makes the model of this name; 0 classes and an empty shape stand for the defaults of the entry. Throws Error for an
// unknown name, and for a shape that the model cannot take.
std::unique_ptr<Classifier> build_model(std::string_view name, std::int64_t classes = 0, const Shape& image = {});

}  // namespace lockstep::models
