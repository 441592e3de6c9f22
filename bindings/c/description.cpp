#include "bindings/c/description.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "bindings/c/json_reader.h"
#include "bindings/c/layers.h"
#include "lockstep/losses/classification.h"
#include "lockstep/losses/regression.h"
#include "lockstep/metrics/metrics.h"
#include "lockstep/onnx/import/imported_model.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/optim/rule_options.h"
#include "lockstep/optim/rule_table.h"
#include "models/zoo/field_model.h"
#include "models/zoo/registry.h"

namespace lockstep::bindings {
namespace {

constexpr std::array<std::string_view, 7> kLosses{"mse",           "l1", "huber", "smooth_l1", "relative_l2",
                                                  "cross_entropy", "bce"};
constexpr std::array<std::string_view, 4> kMetrics{"mae", "rmse", "r2", "accuracy"};

template <std::size_t N>
void require_name(const std::string& name, const std::array<std::string_view, N>& names, const char* what) {
  if (std::ranges::find(names, name) != names.end()) return;
  std::string all;
  for (const std::string_view each : names) all = all.empty() ? std::string(each) : formatted("{}, {}", all, each);
  fail_description("model", formatted("unknown {} '{}', there are: {}", what, name, all));
}

DType dtype_of_name(const std::string& name) {
  if (name == "f32") return DType::F32;
  if (name != "f64") fail_description("model", formatted("'type' is '{}', expected f32 or f64", name));
  return DType::F64;
}

Shape sample_shape(JsonReader& options, const std::string& key) {
  Shape shape = options.shape(key);
  const auto positive = [](std::int64_t extent) { return extent > 0; };
  if (shape.rank() < 1 || shape.rank() >= LOCKSTEP_MAX_RANK || !std::ranges::all_of(shape.dims(), positive)) {
    fail_description("model", formatted("'{}' is {}, expected 1 to {} extents above 0", key, shape.str(),
                                        static_cast<int>(LOCKSTEP_MAX_RANK) - 1));
  }
  return shape;
}

Metric metric_of(const std::string& name, Value prediction, Value target) {
  if (name == "mae") return metrics::mean_absolute_error(prediction, target);
  if (name == "rmse") return metrics::root_mean_squared_error(prediction, target);
  if (name == "r2") return metrics::r_squared(prediction, target);
  return metrics::accuracy(prediction, target);
}

}  // namespace

DescribedModel::DescribedModel(const nlohmann::json& description) : text_(description.dump()) {
  JsonReader options(description, "model");
  input_ = sample_shape(options, "input");
  output_ = sample_shape(options, "output");
  dtype_ = dtype_of_name(options.get<std::string>("type", "f32"));
  describe_loss(options);
  describe_network(options);
  options.finish();
  check_shapes();
}

// Traces the network once, so that layers that do not fit each other are errors of the description.
void DescribedModel::check_shapes() const {
  Graph graph(Mode::Eval, dtype_);
  check_output(forward(graph.input(kInput, {input_.batched(1), dtype_})));
}

void DescribedModel::check_output(const Value& prediction) const {
  if (prediction.shape().has_tail(output_)) return;
  fail_description("model", formatted("the network makes {} of a batch, expected samples of shape {} ('output')",
                                      prediction.shape().str(), output_.str()));
}

// Loss and metrics, and from them the form of targets.
void DescribedModel::describe_loss(JsonReader& options) {
  loss_ = options.get<std::string>("loss", "mse");
  require_name(loss_, kLosses, "loss");
  delta_ = options.get<double>("delta", 1.0);
  if (!(delta_ > 0)) fail_description("model", formatted("'delta' is {}, expected a number above 0", delta_));
  has_classes_ = loss_ == "cross_entropy";
  // Logits (classes, ...) have one class per position as target.
  target_ = has_classes_ ? output_.tail() : output_;
  if (options.has("metrics")) {
    const nlohmann::json& names = options.member("metrics");
    if (!names.is_array()) fail_description("model", "'metrics' is no list of names");
    for (const nlohmann::json& name : names) {
      if (!name.is_string()) fail_description("model", formatted("'metrics' has {}, expected a name", name.dump()));
      metrics_.push_back(name.get<std::string>());
      require_name(metrics_.back(), kMetrics, "metric");
      const bool of_classes = metrics_.back() == "accuracy";
      if (of_classes != (has_classes_ || loss_ == "bce")) {
        fail_description("model", formatted("the metric '{}' does not fit the loss '{}'", metrics_.back(), loss_));
      }
    }
  } else {
    metrics_ = {has_classes_ || loss_ == "bce" ? "accuracy" : "rmse"};
  }
}

// One of "layers", "field_model", "classifier" and "onnx".
void DescribedModel::describe_network(JsonReader& options) {
  const int given = static_cast<int>(options.has("layers")) + static_cast<int>(options.has("field_model")) +
                    static_cast<int>(options.has("classifier")) + static_cast<int>(options.has("onnx"));
  if (given != 1) {
    fail_description(
        "model", formatted("{} of 'layers', 'field_model', 'classifier' and 'onnx' are given, expected one", given));
  }
  if (options.has("layers")) {
    auto chain = std::make_unique<LayerChain>(options.member("layers"), "model.layers");
    forward_ = [network = chain.get()](Value x) { return Forward{(*network)(x)}; };
    module_ = std::move(chain);
  } else if (options.has("field_model")) {
    JsonReader o(options.member("field_model"), "model.field_model");
    models::FieldModelConfig config{.input = input_, .output = output_};
    const auto name = o.get<std::string>("name");
    config.width = o.get<std::int64_t>("width", 0);
    config.depth = o.get<std::int64_t>("depth", 0);
    config.modes = o.get<std::int64_t>("modes", 0);
    config.latent = o.get<std::int64_t>("latent", 0);
    config.dropout = o.get<double>("dropout", 0.0);
    config.series = o.get<bool>("series", false);
    o.finish();
    std::unique_ptr<models::FieldModel> model = models::build_field_model(name, config);
    forward_ = [network = model.get()](Value x) {
      const models::FieldModel::Result result = network->with_penalty(x);
      return Forward{result.prediction, result.penalty};
    };
    module_ = std::move(model);
  } else if (options.has("onnx")) {
    onnx_file_ = options.get<std::string>("onnx");
    auto model = std::make_unique<onnx::ImportedModel>(onnx_file_);
    forward_ = [network = model.get()](Value x) { return Forward{(*network)(x)}; };
    module_ = std::move(model);
  } else {
    if (!has_classes_) fail_description("model", "a 'classifier' needs the loss 'cross_entropy'");
    std::unique_ptr<models::Classifier> model =
        models::build_model(options.get<std::string>("classifier"), output_[0], input_);
    forward_ = [network = model.get()](Value x) { return Forward{(*network)(x)}; };
    module_ = std::move(model);
  }
}

std::vector<data::Field> DescribedModel::fields() const {
  return {{kInput, input_, dtype_}, {kTarget, target_, target_type()}};
}

plan::Traced DescribedModel::trace(const plan::Inputs& in) const {
  const Forward result = forward_(in[kInput]);
  const Value prediction = result.prediction, target = in[kTarget];
  check_output(prediction);
  const auto loss = [&]() -> Loss {
    if (loss_ == "l1") return l1_loss(prediction, target);
    if (loss_ == "huber") return huber_loss(prediction, target, {.delta = delta_});
    if (loss_ == "smooth_l1") return smooth_l1_loss(prediction, target, {.beta = delta_});
    if (loss_ == "relative_l2") return relative_l2_loss(prediction, target);
    if (loss_ == "cross_entropy") return cross_entropy(prediction, target);
    if (loss_ == "bce") return binary_cross_entropy_with_logits(prediction, target);
    return mean_squared_error(prediction, target);
  };
  plan::Traced traced{.loss = loss(), .prediction = prediction};
  if (result.penalty) traced.loss = Loss(traced.loss.mean + result.penalty, traced.loss.weight);
  for (const std::string& name : metrics_) traced.metrics.push_back(metric_of(name, prediction, target));
  return traced;
}

std::shared_ptr<optim::UpdateRule> rule_of(const char* text) {
  const std::string given = text == nullptr || *text == '\0' ? "adam" : text;
  const nlohmann::json json =
      given.front() == '{' ? parse_json(given.c_str(), "optimizer") : nlohmann::json{{"name", given}};
  JsonReader o(json, "optimizer");
  const auto name = o.get<std::string>("name");
  const auto entry = std::ranges::find(optim::kRules, name, &optim::RuleEntry::name);
  if (entry == optim::kRules.end()) {
    fail_description("optimizer", formatted("unknown name '{}', there are: {}", name, optim::rule_names({}, ", ")));
  }
  optim::RuleOptions options{.rule = entry->rule};
  const auto set = [&](const char* key, auto& value, auto otherwise) {
    value = otherwise;
    if (entry->reads(key)) value = o.get<decltype(otherwise)>(key, otherwise);
  };
  set("momentum", options.sgd.momentum, entry->momentum);
  set("nesterov", options.sgd.nesterov, false);
  set("beta1", options.adam.beta1, 0.9);
  set("beta2", options.adam.beta2, entry->beta2);
  set("eps", options.adam.epsilon, entry->epsilon);
  set("alpha", options.rmsprop.alpha, 0.99);
  set("centered", options.rmsprop.centered, false);
  set("trust-coefficient", options.trust_coefficient, 0.001);
  o.finish();
  return optim::make_rule(options);
}

}  // namespace lockstep::bindings
