// A classifier that is read from a file of ONNX: images (samples, channels, height, width), or vectors, into logits
// (samples, classes). Its layers are the file's; see lockstep/onnx/import/imported_model.h.
#pragma once

#include <filesystem>
#include <string_view>

#include "lockstep/onnx/import/imported_model.h"
#include "models/zoo/classifier.h"

namespace lockstep::models {

class OnnxClassifier : public Classifier {
 public:
  // Throws Error for a file that cannot be read, or has other than one input with a batch of floating numbers.
  explicit OnnxClassifier(const std::filesystem::path& file);
  Value operator()(Value images) const override;

  Shape image() const;           // of one sample; empty: the file leaves a size open
  std::int64_t classes() const;  // 0: the file does not say it

 private:
  std::filesystem::path file_;
  onnx::ImportedGraph graph_;
};

// Whether a model is named by a file: "net.onnx".
bool is_model_file(std::string_view name);

}  // namespace lockstep::models
