#include "lockstep/infer/predictor.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>

#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/error.h"
#include "lockstep/infer/local_tables.h"
#include "lockstep/nn/embedding.h"

namespace lockstep::infer {
namespace {

std::size_t bytes_per_sample(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape().tail().elements()) * size_of(tensor.dtype());
}

// Returns the number of samples of the inputs; throws Error if they differ.
std::int64_t samples_of(std::span<const Predictor::Input> inputs) {
  check(!inputs.empty(), "predictor", "there are no inputs, expected at least one");
  for (const auto& [name, tensor] : inputs) {
    check(tensor.shape().rank() > 0 && tensor.shape()[0] > 0, "predictor",
          "input '{}' is {}, expected a first dimension of samples", name, tensor.shape().str());
    check(tensor.shape()[0] == inputs[0].tensor.shape()[0], "predictor",
          "input '{}' has {} samples, '{}' has {}; expected equal numbers", name, tensor.shape()[0], inputs[0].name,
          inputs[0].tensor.shape()[0]);
  }
  return inputs[0].tensor.shape()[0];
}

// What ops that draw random numbers read: step 0, and samples numbered from `first` on.
void number_samples(plan::Plan& plan, std::int64_t first, std::int64_t samples) {
  if (void* step = plan.input(Graph::kStep)) *static_cast<std::int64_t*>(step) = 0;
  if (auto* ids = static_cast<std::int64_t*>(plan.input(Graph::kSampleIds))) std::iota(ids, ids + samples, first);
}

}  // namespace

Predictor::Predictor(const nn::Module& module, Function function, PredictorOptions options)
    : options_(
          (check(function != nullptr, "predictor", "the function is empty, expected one from inputs to a prediction"),
           std::move(options))),
      model_(module.named_parameters(),
             [f = std::move(function)](const plan::Inputs& inputs) { return plan::Traced{.prediction = f(inputs)}; },
             {.dtype = options_.dtype}) {
  check(is_floating(options_.dtype), "predictor", "the type is {}, expected f32 or f64", name_of(options_.dtype));
  check(options_.batch >= 1, "predictor", "batch is {}, expected at least 1", options_.batch);
  // Logical order: weights can be loaded before the first input determines a plan. Kernels that read another layout get
  // derived copies.
  model_.parameters().allocate({}, {});
  std::vector<NamedTable> tables = nn::named_tables(module);
  if (tables.empty()) return;
  for (const NamedTable& named : tables) {
    check(named.table->store.expired(), "predictor",
          "'{}' has a store already: another Trainer or Predictor uses this module; expected one at a time",
          named.name);
  }
  tables_ = std::make_shared<LocalTables>(tables, options_.dtype, model_.parameters().options().seed);
  for (const NamedTable& named : tables) named.table->store = tables_;
}

Predictor::~Predictor() = default;

checkpoint::LoadReport Predictor::load(const std::filesystem::path& file, const checkpoint::LoadOptions& options) {
  checkpoint::WeightsFile stored(file);
  return load_from(stored.tensors(), options, file.string());
}

checkpoint::LoadReport Predictor::load(std::span<const io::NamedTensor> tensors,
                                       const checkpoint::LoadOptions& options) {
  return load_from(io::source_of(tensors), options, "");
}

checkpoint::LoadReport Predictor::load_from(const io::TensorSource& tensors, const checkpoint::LoadOptions& options,
                                            const std::string& file) {
  if (!tables_) return checkpoint::load_weights(model_.parameters(), tensors, options, file);
  const LocalTables::Match rows = tables_->match(tensors.infos, options);
  const checkpoint::LoadReport& of_tables = rows.report;
  if (options.strict) of_tables.require_complete("weights", file);
  const io::TensorSource rest =
      io::select(tensors, [&](const io::TensorInfo& info) { return !rows.names.contains(info.name); });
  const checkpoint::TensorMatch dense = checkpoint::match_weights(model_.parameters(), rest.infos, options, file);
  tables_->load(tensors, rows);
  checkpoint::write_weights(model_.parameters(), dense, rest);
  checkpoint::LoadReport report = dense.report;
  const auto join = [&](std::vector<std::string> checkpoint::LoadReport::*names) {
    std::ranges::copy(of_tables.*names, std::back_inserter(report.*names));
  };
  for (const auto names : {&checkpoint::LoadReport::loaded, &checkpoint::LoadReport::missing,
                           &checkpoint::LoadReport::mismatched, &checkpoint::LoadReport::skipped})
    join(names);
  return report;
}

Tensor Predictor::operator()(const Tensor& input) { return (*this)({{options_.input, input}}); }

Tensor Predictor::predict(std::span<const Input> inputs) {
  std::vector<Tensor> converted;
  converted.reserve(inputs.size());  // Input refers to its elements
  std::vector<Input> ready;
  for (const auto& [name, tensor] : inputs) {
    const bool fits = !is_floating(tensor.dtype()) || tensor.dtype() == options_.dtype;
    ready.push_back({name, fits ? tensor : converted.emplace_back(tensor.to(options_.dtype))});
  }
  return run(ready);
}

Tensor Predictor::run(std::span<const Input> inputs) {
  const std::int64_t samples = samples_of(inputs);
  if (samples <= options_.batch) return compute(inputs, 0, samples).prediction();
  Tensor whole;
  for (std::int64_t begin = 0; begin < samples; begin += options_.batch) {
    const std::int64_t count = std::min(options_.batch, samples - begin);
    const Tensor part = compute(inputs, begin, count).prediction();
    check(part.shape().rank() > 0 && part.shape()[0] == count, "predictor",
          "the prediction for {} samples has shape {}, expected one row per sample; with any other shape, {} samples "
          "cannot be computed in parts of {}: set PredictorOptions::batch",
          count, part.shape().str(), samples, options_.batch);
    if (begin == 0) whole = Tensor(part.shape().tail().batched(samples), part.dtype());
    std::copy_n(part.raw(), part.bytes(), whole.raw() + static_cast<std::size_t>(begin) * bytes_per_sample(part));
  }
  return whole;
}

plan::Plan& Predictor::compute(std::span<const Input> inputs, std::int64_t begin, std::int64_t samples) {
  std::map<std::string, Type> types;
  for (const auto& [name, tensor] : inputs) types[name] = {tensor.shape().tail().batched(samples), tensor.dtype()};
  plan::Plan& plan = model_.plan(Mode::Eval, types);
  for (const auto& [name, tensor] : inputs) {
    void* to = plan.input(name);
    const std::size_t row = bytes_per_sample(tensor);
    if (to == nullptr || row == 0) continue;  // the model does not read this input
    std::memcpy(to, tensor.raw() + static_cast<std::size_t>(begin) * row, static_cast<std::size_t>(samples) * row);
  }
  number_samples(plan, begin, samples);
  plan.run();
  last_plan_ = &plan;
  return plan;
}

Tensor Predictor::observed(const std::string& name) const {
  check(last_plan_ != nullptr, "predictor", "observed('{}') is called before the first prediction", name);
  return last_plan_->observed(name);
}

}  // namespace lockstep::infer
