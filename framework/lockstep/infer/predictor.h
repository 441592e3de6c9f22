// Inference without a training session: a model with weights computes predictions. No MPI, no gradients, no optimizer
// state; batch norm uses running statistics. Inputs and predictions have the samples as first dimension. One thread at
// a time; several Predictors of one module, one per thread, are independent after construction. The module must outlive
// the Predictor. A module with sparse tables (nn/embedding.h) has one Predictor or Trainer at a time.
//
//   Predictor predict(network, [&](const Inputs& in) { return network(in["image"]); });
//   predict.load("weights.h5");
//   const Tensor logits = predict(images);
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/checkpoint/state.h"
#include "lockstep/nn/module.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::infer {

class LocalTables;

struct PredictorOptions {
  DType dtype = DType::F32;     // type of weights and arithmetic: F32 or F64
  std::string input = "image";  // name of the input in a call with one tensor
  std::int64_t batch = 256;     // limit of samples computed at once; more samples are computed in parts
};

class Predictor {
 public:
  using Function = std::function<Value(const plan::Inputs& inputs)>;
  struct Input {
    std::string name;
    const Tensor& tensor;
  };

  // Makes a model with initial weights; `function` computes the prediction from the inputs. Throws Error for an empty
  // function and for options out of range.
  Predictor(const nn::Module& module, Function function, PredictorOptions options = {});
  ~Predictor();
  Predictor(const Predictor&) = delete;  // plans contain pointers to this object
  Predictor& operator=(const Predictor&) = delete;

  // Replaces the weights, as checkpoint::load_weights() does (checkpoint/state.h); throws Error if they do not fit, and
  // then changes none.
  checkpoint::LoadReport load(const std::filesystem::path& file, const checkpoint::LoadOptions& options = {});
  checkpoint::LoadReport load(std::span<const io::NamedTensor> tensors, const checkpoint::LoadOptions& options = {});

  // Returns the prediction for these samples: (samples, ...), in logical order. Converts f32 and f64 inputs to the
  // model's type. Compiles a plan for each number of samples in a part, and keeps it. Throws Error for inputs that the
  // model does not accept.
  Tensor operator()(const Tensor& input);
  Tensor operator()(std::initializer_list<Input> inputs) {  // predict({{"left", a}, {"right", b}})
    return predict({inputs.begin(), inputs.size()});
  }
  Tensor predict(std::span<const Input> inputs);
  // Returns a value that the function observed, for the last part that was computed; throws Error before the first one.
  Tensor observed(const std::string& name) const;

  const plan::ParameterStore& parameters() const { return model_.parameters(); }
  plan::ParameterStore& parameters() { return model_.parameters(); }  // call its refresh() after changing values

 private:
  checkpoint::LoadReport load_from(const io::TensorSource& tensors, const checkpoint::LoadOptions& options,
                                   const std::string& file);
  Tensor run(std::span<const Input> inputs);
  plan::Plan& compute(std::span<const Input> inputs, std::int64_t begin, std::int64_t samples);

  PredictorOptions options_;
  plan::CompiledModel model_;
  std::shared_ptr<LocalTables> tables_;  // null: the model has no sparse tables
  plan::Plan* last_plan_ = nullptr;
};

}  // namespace lockstep::infer
