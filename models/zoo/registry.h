// The table of models by name, for tools, benches and programs that take any model; a name that ends in .onnx is a
// file. A new model needs its files and a line in registry.cpp.
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
  Shape image;           // default shape of one sample; empty: a file that leaves a size open
  std::int64_t classes;  // default number of classes
  std::function<std::unique_ptr<Classifier>(std::int64_t classes, const Shape& image)> build;
};

std::span<const ModelEntry> model_table();

// Returns the entry of this name, or of the file of ONNX that the name ends in .onnx for. Throws Error that lists the
// names if there is none, and for a file that cannot be read.
ModelEntry find_model(std::string_view name);

// Makes the model of this name; 0 classes and an empty shape stand for the defaults of the entry. Throws Error for an
// unknown name, for a shape or a number of classes that the model cannot have, and for no shape where the entry has
// none.
std::unique_ptr<Classifier> build_model(std::string_view name, std::int64_t classes = 0, const Shape& image = {});

}  // namespace lockstep::models
