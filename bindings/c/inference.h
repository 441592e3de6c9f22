// Predictions of a described model, and their gradients by the input, on arrays of the program. No communication. One
// thread at a time.
#pragma once

#include <lockstep_c.h>

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "bindings/c/description.h"
#include "lockstep/infer/predictor.h"
#include "lockstep/io/named_tensor.h"

namespace lockstep::bindings {

class Inference {
 public:
  explicit Inference(std::shared_ptr<const DescribedModel> model);

  // Replaces the weights by those of a file, or by tensors named as in weights(). Throws Error if they do not fit.
  void load(const std::filesystem::path& file);
  void load(std::span<const io::NamedTensor> weights);
  std::vector<io::NamedTensor> weights() const;  // copies

  // See lockstep_model_predict() and lockstep_model_gradient(). They throw CodedError for arrays that do not fit.
  void predict(const lockstep_array* input, const lockstep_array* output);
  void gradient(const lockstep_array* input, const lockstep_array* direction, const lockstep_array* gradient);

 private:
  infer::Predictor& gradients();

  std::shared_ptr<const DescribedModel> model_;
  infer::Predictor predictor_;
  std::unique_ptr<infer::Predictor> gradients_;  // made by the first call of gradient()
  bool gradients_are_old_ = true;                // their weights are not those of predictor_
};

}  // namespace lockstep::bindings
