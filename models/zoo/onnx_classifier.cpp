#include "models/zoo/onnx_classifier.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::models {

OnnxClassifier::OnnxClassifier(const std::filesystem::path& file)
    : file_(file), graph_(file, *this, [this](std::string name, Parameter parameter) -> Parameter& {
        return add(std::move(name), std::move(parameter));
      }) {
  const auto& inputs = graph_.inputs();
  check(inputs.size() == 1, "models", "{} has {} inputs, expected one, of images or vectors", file.string(),
        inputs.size());
  check(inputs[0].dims.size() >= 2, "models", "{}: the input {} has {} dimensions, expected (samples, ...)",
        file.string(), inputs[0].name, inputs[0].dims.size());
}

Value OnnxClassifier::operator()(Value images) const {
  const Value logits = graph_.trace({images}).front();
  check(logits.shape().rank() == 2, "models", "{}: the output has the shape {}, expected (samples, classes)",
        file_.string(), logits.shape().str());
  return logits;
}

Shape OnnxClassifier::image() const {
  const onnx::FileValue& input = graph_.inputs().front();
  std::vector<std::int64_t> dims(input.dims.begin() + 1, input.dims.end());
  const bool is_open = std::ranges::any_of(dims, [](std::int64_t size) { return size <= 0; });
  return is_open ? Shape() : Shape(std::move(dims));
}

std::int64_t OnnxClassifier::classes() const {
  const auto& dims = graph_.outputs().front().dims;
  return dims.size() == 2 && dims[1] > 0 ? dims[1] : 0;
}

bool is_model_file(std::string_view name) { return name.ends_with(".onnx"); }

}  // namespace lockstep::models
