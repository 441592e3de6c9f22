#include "bindings/c/inference.h"

#include <algorithm>

#include "bindings/c/arrays.h"
#include "lockstep/checkpoint/state.h"
#include "lockstep/ops/gradient.h"

namespace lockstep::bindings {
namespace {

constexpr const char* kDirection = "direction";

Tensor ones(const Shape& shape, DType type) {
  Tensor tensor(shape, type);
  if (type == DType::F32) {
    std::ranges::fill(tensor.data<float>(), 1.0F);
  } else {
    std::ranges::fill(tensor.data<double>(), 1.0);
  }
  return tensor;
}

}  // namespace

Inference::Inference(std::shared_ptr<const DescribedModel> model)
    : model_(std::move(model)),
      predictor_(model_->module(), [m = model_.get()](const plan::Inputs& in) { return m->forward(in[kInput]); },
                 {.dtype = model_->dtype(), .input = kInput}) {}

void Inference::load(const std::filesystem::path& file) {
  predictor_.load(file);
  gradients_are_old_ = true;
}

void Inference::load(std::span<const io::NamedTensor> weights) {
  predictor_.load(weights);
  gradients_are_old_ = true;
}

std::vector<io::NamedTensor> Inference::weights() const { return checkpoint::weights(predictor_.parameters()); }

void Inference::predict(const lockstep_array* input, const lockstep_array* output) {
  const View in = view_of(input, "input", model_->input()), out = view_of(output, "output", model_->output());
  check_samples(in, out);
  if (in.samples() == 0) return;
  write_to(out, predictor_(tensor_of(in, model_->dtype())));
}

// A second model with the same weights, whose prediction is the gradient.
infer::Predictor& Inference::gradients() {
  if (!gradients_) {
    const auto gradient = [m = model_.get()](const plan::Inputs& in) {
      const Value x = in[kInput];
      const Value targets[] = {x};
      const Value result = append_gradients(m->forward(x), in[kDirection], targets)[0];
      check(static_cast<bool>(result), "gradient", "the prediction does not depend on the input");
      return result;
    };
    gradients_ = std::make_unique<infer::Predictor>(model_->module(), gradient,
                                                    infer::PredictorOptions{.dtype = model_->dtype(), .input = kInput});
  }
  if (gradients_are_old_) gradients_->load(weights());
  gradients_are_old_ = false;
  return *gradients_;
}

void Inference::gradient(const lockstep_array* input, const lockstep_array* direction, const lockstep_array* gradient) {
  const View in = view_of(input, "input", model_->input()), out = view_of(gradient, "gradient", model_->input());
  check_samples(in, out);
  Tensor along;
  if (direction != nullptr) {
    const View given = view_of(direction, "direction", model_->output());
    check_samples(in, given);
    along = tensor_of(given, model_->dtype());
  } else {
    along = ones(model_->output().batched(in.samples()), model_->dtype());
  }
  if (in.samples() == 0) return;
  const Tensor x = tensor_of(in, model_->dtype());
  write_to(out, gradients()({{kInput, x}, {kDirection, along}}));
}

}  // namespace lockstep::bindings
