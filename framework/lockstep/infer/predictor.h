// Inference without a training session: a model's weights and what they predict. No MPI, no gradients, no optimizer
// state; running statistics instead of a batch's. Inputs and predictions have samples as their first dimension. One
// thread at a time; several Predictors of one module, one per thread, are independent of each other once they are
// built. The module must outlive it.
//
//   Predictor predict(network, [&](const Inputs& in) { return network(in["image"]); });
//   predict.load("weights.h5");
//   const Tensor logits = predict(images);
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "lockstep/checkpoint/state.h"
#include "lockstep/nn/module.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::infer {

struct PredictorOptions {
  DType dtype = DType::F32;     // of weights and arithmetic: F32 or F64
  std::string input = "image";  // the input that predict(tensor) is
  std::int64_t batch = 256;     // samples computed at once, at most; more are taken in parts
};

class Predictor {
 public:
  using Function = std::function<Value(const plan::Inputs& inputs)>;
  struct Input {
    std::string name;
    const Tensor& tensor;
  };

  // Holds initial values until something is loaded.
  Predictor(const nn::Module& module, Function function, PredictorOptions options = {});
  Predictor(const Predictor&) = delete;  // plans point into it
  Predictor& operator=(const Predictor&) = delete;

  // See load_weights() in state.h.
  checkpoint::LoadReport load(const std::filesystem::path& file, const checkpoint::LoadOptions& options = {});
  checkpoint::LoadReport load(std::span<const io::NamedTensor> tensors, const checkpoint::LoadOptions& options = {});

  // The function's value for these samples, in logical order. f32 and f64 inputs convert to the model's type. Plans are
  // compiled for each size of a part, and kept. Throws Error for inputs that the model cannot take.
  Tensor operator()(const Tensor& input);
  Tensor operator()(std::initializer_list<Input> inputs);  // predict({{"left", a}, {"right", b}})
  // A value that the function observed, of the last part computed.
  Tensor observed(const std::string& name) const;

  const plan::ParameterStore& parameters() const { return model_.parameters(); }
  plan::ParameterStore& parameters() { return model_.parameters(); }  // call refresh() after writing

 private:
  Tensor run(std::span<const Input> inputs);
  plan::Plan& compute(std::span<const Input> inputs, std::int64_t begin, std::int64_t samples);

  PredictorOptions options_;
  plan::CompiledModel model_;
  plan::Plan* last_plan_ = nullptr;
};

}  // namespace lockstep::infer
