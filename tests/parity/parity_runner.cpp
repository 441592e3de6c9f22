// Runs what check_parity.py asks for: reads a list of requests from each line of its input, and writes a line with the
// list of answers. Tensors go through HDF5 files, as between users of both libraries. One rank, no mpirun needed.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>

#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/state.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/environment.h"
#include "lockstep/data/resize.h"
#include "lockstep/losses/regression.h"
#include "lockstep/optim/plateau.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/step/trainer.h"
#include "models/zoo/click_task.h"
#include "models/zoo/field_model.h"
#include "models/zoo/mobilenet.h"
#include "models/zoo/registry.h"
#include "tests/parity/gpt_request.h"
#include "tests/parity/operator_model.h"
#include "tests/parity/table_model.h"

namespace lockstep::parity {
namespace {

using io::NamedTensor;
using nlohmann::json;
using Tensors = std::vector<NamedTensor>;

std::shared_ptr<optim::UpdateRule> make_rule(const json& request) {
  const std::string name = request.value("optimizer", "sgd");
  if (name == "sgd") {
    return optim::sgd({.momentum = request.value("momentum", 0.0), .nesterov = request.value("nesterov", false)});
  }
  if (name == "rmsprop") {
    return optim::rmsprop({.alpha = request.value("alpha", 0.99),
                           .momentum = request.value("momentum", 0.0),
                           .centered = request.value("centered", false)});
  }
  if (name == "adagrad") return optim::adagrad({});
  if (name == "adamax") return optim::adamax({});
  if (name == "nadam") return optim::nadam({});
  if (name == "radam") return optim::radam({});
  if (name == "lars") return optim::lars({.momentum = request.value("momentum", 0.9)});
  if (name == "lamb") return optim::lamb({});
  check(name == "adam" || name == "adamw", "parity", "there is no optimizer '{}' here", name);
  return optim::adam({.decoupled_decay = name == "adamw"});
}

Shape shape_of(const json& request, const char* name) {
  return Shape(request.at(name).get<std::vector<std::int64_t>>());
}

std::unique_ptr<models::FieldModel> field_model(const json& request) {
  return models::build_field_model(request.at("field_model").get<std::string>(),
                                   {.input = shape_of(request, "inputs"),
                                    .output = shape_of(request, "outputs"),
                                    .width = request.value("width", std::int64_t{0}),
                                    .depth = request.value("depth", std::int64_t{0}),
                                    .modes = request.value("modes", std::int64_t{0})});
}

std::unique_ptr<models::Classifier> classifier(const json& request) {
  const std::string name = request.at("model");
  const std::int64_t classes = request.at("classes");
  const Shape image = shape_of(request, "image");
  if (name == "mobilenet_v2") {  // without dropout, whose numbers are each library's own
    return std::make_unique<models::MobileNetV2>(
        models::MobileNetV2Config{.dropout = 0, .in_channels = image[0], .classes = classes});
  }
  return models::build_model(name, classes, image);
}

std::unique_ptr<models::ClickModel> click_model(const json& request) {
  using Sizes = std::vector<std::int64_t>;
  return models::build_click_model(request.at("click_model").get<std::string>(),
                                   {.dense = request.at("dense"),
                                    .fields = request.at("fields"),
                                    .rows = request.at("rows"),
                                    .dim = request.at("dim"),
                                    .bottom = request.value("bottom", Sizes{}),
                                    .top = request.value("top", Sizes{}),
                                    .user_fields = request.value("user_fields", std::int64_t{1})});
}

// The subject of a request: a model of the zoo or one op, and the function that traces it with its loss.
struct Subject {
  std::unique_ptr<nn::Module> module;
  plan::ModelFunction function;
  bool has_output = true;  // observes "output", its prediction too
};

Subject make_subject(const json& request, const Tensors& weights) {
  if (request.contains("op")) {
    auto model = std::make_unique<OperatorModel>(request, weights);
    plan::ModelFunction function = [m = model.get()](const plan::Inputs& in) { return (*m)(in); };
    const bool has_output = !model->is_loss();
    return {std::move(model), std::move(function), has_output};
  }
  if (request.contains("gpt")) {
    auto network = std::make_unique<models::Gpt>(gpt_config(request["gpt"]));
    plan::ModelFunction function = [m = network.get()](const plan::Inputs& in) {
      const Value logits = m->logits(in["tokens"]);
      in.graph().observe("output", logits);
      return plan::Traced{.loss = m->loss(in["tokens"], in["targets"]).loss, .prediction = logits};
    };
    return {std::move(network), std::move(function)};
  }
  if (request.contains("bag")) {
    auto network = std::make_unique<TableModel>(request);
    plan::ModelFunction function = [m = network.get()](const plan::Inputs& in) { return m->trace(in); };
    return {std::move(network), std::move(function)};
  }
  if (request.contains("click_model")) {
    auto network = click_model(request);
    const models::ClickTaskOptions task{
        .loss = request.value("loss", "bce") == "softmax" ? models::ClickLoss::InBatch : models::ClickLoss::Bce,
        .dense = request.at("dense") > 0};
    plan::ModelFunction function = [m = network.get(), task](const plan::Inputs& in) {
      plan::Traced traced = models::click_task(*m, in, task);
      in.graph().observe("output", traced.prediction);
      return traced;
    };
    return {std::move(network), std::move(function)};
  }
  if (request.contains("field_model")) {
    auto network = field_model(request);
    plan::ModelFunction function = [m = network.get()](const plan::Inputs& in) {
      const Value prediction = (*m)(in["input"]);
      in.graph().observe("output", prediction);
      return plan::Traced{.loss = mean_squared_error(prediction, in["target"]), .prediction = prediction};
    };
    return {std::move(network), std::move(function)};
  }
  auto network = classifier(request);
  plan::ModelFunction function = [m = network.get(), loss = loss_options(request)](const plan::Inputs& in) {
    const Value logits = (*m)(in["image"]);
    in.graph().observe("output", logits);
    return plan::Traced{.loss = cross_entropy(logits, in["label"], loss), .prediction = logits};
  };
  return {std::move(network), std::move(function)};
}

// The rows that one step of `steps` trains: equal parts of everything in the file.
data::Batch part_of_batch(const Tensors& all, std::int64_t samples, std::int64_t first) {
  data::Batch batch;
  for (const NamedTensor& t : all) {
    Tensor field(t.tensor.shape().tail().batched(samples), t.tensor.dtype());
    const std::size_t row = field.bytes() / static_cast<std::size_t>(samples);
    std::memcpy(field.raw(), t.tensor.raw() + static_cast<std::size_t>(first) * row, field.bytes());
    batch.names.push_back(t.name);
    batch.fields.push_back(std::move(field));
  }
  batch.step = {.global_size = samples, .local = {0, samples}};
  for (std::int64_t i = 0; i < samples; ++i) batch.step.samples.push_back(first + i);
  return batch;
}

kernels::KernelOptions::ConvMath conv_math(const json& request) {
  using ConvMath = kernels::KernelOptions::ConvMath;
  const std::string math = request.value("conv_math", "fast");
  for (const ConvMath named : {ConvMath::Accurate, ConvMath::Exact}) {
    if (math == kernels::name_of(named)) return named;
  }
  return ConvMath::Fast;
}

class Run {
 public:
  Run(const json& request, Tensors batch, const Tensors& weights)
      : request_(request),
        batch_(std::move(batch)),
        precision_(request.value("precision", "f32") == "f64" ? DType::F64 : DType::F32),
        steps_(request.value("steps", std::int64_t{1})),
        subject_(make_subject(request, weights)) {
    for (NamedTensor& t : batch_) {
      if (t.tensor.dtype() == DType::F32 || t.tensor.dtype() == DType::F64) t.tensor = t.tensor.to(precision_);
      fields_.push_back({t.name, t.tensor.shape().tail(), t.tensor.dtype()});
    }
    samples_ = batch_.front().tensor.shape()[0] / steps_;
    trainer_ = std::make_unique<train::Trainer>(
        comm::Communicator::self(), *subject_.module, subject_.function, fields_,
        train::TrainerOptions{.global_batch = samples_,
                              .precision = precision_,
                              .seed = request.value("seed", std::uint64_t{0}),
                              .rule = make_rule(request),
                              .update = {.weight_decay = request.value("weight_decay", 0.0)},
                              .tables = {.rules = {.all = table_rule(request)}},
                              .compile = {.kernels = {.conv_math = conv_math(request)}}});
    Tensors model;
    for (const NamedTensor& t : weights) model.push_back({"model/" + t.name, t.tensor.clone()});
    if (!model.empty()) trainer_->load(model, 0, true);
  }

  json operator()() {
    predict("before");
    json losses = json::array();
    for (std::int64_t s = 0; s < steps_; ++s) {
      losses.push_back(trainer_->step(part_of_batch(batch_, samples_, s * samples_), request_.value("lr", 0.0)).loss);
      if (s == 0) keep_first_step();
    }
    for (NamedTensor& t : weights()) results_.push_back({"after/" + t.name, std::move(t.tensor)});
    predict("after_training");
    checkpoint::save_weights(request_.at("output").get<std::string>(), results_);
    if (request_.contains("save_weights")) {
      checkpoint::save_weights(request_.at("save_weights").get<std::string>(), weights());
    }
    if (request_.contains("save_checkpoint")) {
      checkpoint::save(request_.at("save_checkpoint").get<std::string>(),
                       {.tensors = trainer_->state(), .metadata = "{}"});
    }
    return {{"losses", losses}};
  }

 private:
  // The evaluation plan's output for the first step's samples.
  void predict(const std::string& name) {
    if (!subject_.has_output) return;
    const data::Batch batch = part_of_batch(batch_, samples_, 0);
    std::map<std::string, Type> types;
    for (const data::Field& f : fields_) types[f.name] = {f.shape.batched(samples_), f.dtype};
    plan::Plan& plan = trainer_->model().plan(Mode::Eval, types);
    for (const data::Field& f : fields_) {
      const Tensor& source = batch.at(f.name);
      if (void* input = plan.input(f.name)) std::memcpy(input, source.raw(), source.bytes());
    }
    plan.run();
    results_.push_back({name, plan.prediction()});
  }

  void keep_first_step() {
    const plan::ParameterStore& store = trainer_->model().parameters();
    if (subject_.has_output) results_.push_back({"output", trainer_->observed("output")});
    for (const NamedParameter& p : store.parameters()) {
      if (store.has_gradient(p.parameter)) results_.push_back({"gradient/" + p.name, trainer_->gradient(p.name)});
      if (p.parameter->role == Role::Buffer) results_.push_back({"buffer/" + p.name, store.read(p.name)});
    }
  }

  Tensors weights() const {
    Tensors tensors = trainer_->state();
    std::erase_if(tensors, [](const NamedTensor& t) { return !t.name.starts_with(checkpoint::kModelPrefix); });
    for (NamedTensor& t : tensors) t.name.erase(0, checkpoint::kModelPrefix.size());
    return tensors;
  }

  const json& request_;
  Tensors batch_;
  DType precision_;
  std::int64_t steps_, samples_ = 0;
  Subject subject_;
  std::vector<data::Field> fields_;
  std::unique_ptr<train::Trainer> trainer_;
  Tensors results_;
};

// The files of a list of requests, each read once: two processes read an HDF5 file for this one.
class Files {
 public:
  // The tensors of the request's file KEY; with KEY_part those whose names begin with it, without it.
  Tensors read(const json& request, const std::string& key) {
    const std::string path = request.at(key), part = request.value(key + "_part", "");
    if (!files_.contains(path)) files_[path] = checkpoint::load_weights(path);
    Tensors found;
    for (const NamedTensor& t : files_.at(path)) {
      if (t.name.starts_with(part)) found.push_back({t.name.substr(part.size()), t.tensor.clone()});
    }
    return found;
  }

 private:
  std::map<std::string, Tensors> files_;
};

json train(const json& request, Files& files) {
  const Tensors weights = request.contains("weights") ? files.read(request, "weights") : Tensors();
  return Run(request, files.read(request, "batch"), weights)();
}

json names(const json& request) {
  json result = json::array();
  std::unique_ptr<nn::Module> network;
  if (request.contains("field_model")) {
    network = field_model(request);
  } else {
    network = models::build_model(request.at("model").get<std::string>());
  }
  for (const NamedParameter& p : network->named_parameters()) {
    result.push_back({p.name, p.parameter->shape.dims(), p.parameter->is_integer});
  }
  return result;
}

json schedule(const json& r) {
  const std::string kind = r.at("kind");
  const double rate = r.at("rate"), epochs = r.at("epochs");
  optim::Schedule of;
  if (kind == "cosine") of = optim::cosine(rate, epochs, r.value("minimum", 0.0));
  if (kind == "one_cycle") {
    of = optim::one_cycle({.rate = rate,
                           .epochs = epochs,
                           .rising = r.at("rising"),
                           .start_divisor = r.at("start_divisor"),
                           .final_divisor = r.at("final_divisor")});
  }
  if (kind == "step") of = optim::step_decay(rate, r.at("milestones").get<std::vector<double>>(), r.at("gamma"));
  if (kind == "warm_up") of = optim::warm_up(optim::constant(rate), epochs, r.at("start"));
  if (kind == "cosine_restarts") {
    of = optim::cosine_restarts(
        {.rate = rate, .epochs = epochs, .growth = r.at("growth"), .minimum = r.value("minimum", 0.0)});
  }
  if (kind == "polynomial") of = optim::polynomial({.rate = rate, .epochs = epochs, .power = r.at("power")});
  if (kind == "exponential") of = optim::exponential(rate, r.at("gamma"));
  if (kind == "inverse_square_root") of = optim::inverse_square_root(rate, epochs);
  check(static_cast<bool>(of), "parity", "there is no schedule '{}' here", kind);
  json rates = json::array();
  for (const double epoch : r.at("at").get<std::vector<double>>()) rates.push_back(of(epoch));
  return rates;
}

// The rate after each evaluation with one of these losses.
json plateau(const json& r) {
  const double rate = r.at("rate");
  optim::Plateau of({.factor = r.at("factor"),
                     .patience = r.at("patience"),
                     .threshold = r.at("threshold"),
                     .cooldown = r.at("cooldown")},
                    r.at("minimum").get<double>() / rate);
  json rates = json::array();
  for (const double loss : r.at("losses").get<std::vector<double>>()) {
    of.add(loss);
    rates.push_back(rate * of.factor());
  }
  return rates;
}

// Each tensor of the file, of shape (samples, channels, height, width), scaled sample by sample.
json resize(const json& request, Files& files) {
  Tensors results;
  for (const NamedTensor& t : files.read(request, "batch")) {
    const std::vector<data::Field> image{{"image", t.tensor.shape().tail(), t.tensor.dtype()}};
    const data::ResizeImages scale(image[0].shape, request.at("side").get<std::int64_t>());
    const std::vector<data::Field> scaled = scale.fields(image);
    const std::int64_t samples = t.tensor.shape()[0];
    Tensor result(scaled[0].shape.batched(samples), scaled[0].dtype);
    for (std::int64_t i = 0; i < samples; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::byte* const in[] = {t.tensor.raw() + at * image[0].bytes()};
      std::byte* const out[] = {result.raw() + at * scaled[0].bytes()};
      scale.apply({}, image, in, out);
    }
    results.push_back({t.name, std::move(result)});
  }
  checkpoint::save_weights(request.at("output").get<std::string>(), results);
  return json::object();
}

json answer(const json& request, Files& files) {
  const std::string task = request.at("task");
  if (task == "train") return train(request, files);
  if (task == "resize") return resize(request, files);
  if (task == "names") return names(request);
  if (task == "plateau") return plateau(request);
  check(task == "schedule", "parity", "there is no task '{}'", task);
  return schedule(request);
}

}  // namespace
}  // namespace lockstep::parity

// In place of the answers a failure writes {"error": what}.
int main(int argc, char**) {
  if (argc != 1) {
    std::fprintf(stderr, "usage: parity_runner < REQUESTS\n");
    return 2;
  }
  const lockstep::comm::Environment mpi;
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json answers = nlohmann::json::array();
    lockstep::parity::Files files;
    try {
      for (const auto& request : nlohmann::json::parse(line))
        answers.push_back(lockstep::parity::answer(request, files));
    } catch (const std::exception& error) {
      answers = {{"error", error.what()}};
    }
    std::cout << answers << std::endl;
  }
}
