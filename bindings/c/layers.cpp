#include "bindings/c/layers.h"

#include <map>

#include "bindings/c/json_reader.h"
#include "lockstep/nn/activations.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/shapes.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/softmax.h"

namespace lockstep::bindings {
namespace {

// Appends the layer that `options` describe.
using Maker = std::function<void(LayerChain& chain, const std::string& name, JsonReader& options)>;

// An option with one number for all axes, or one per axis.
template <int Axes>
nn::PerAxis<Axes> axes_of(JsonReader& options, const std::string& key) {
  if (options.member(key).is_number()) return nn::PerAxis<Axes>(options.get<std::int64_t>(key));
  const auto n = options.get<std::vector<std::int64_t>>(key);
  if (n.size() != static_cast<std::size_t>(Axes)) {
    fail_description(options.where(), formatted("'{}' has {} numbers, expected one, or {}", key, n.size(), Axes));
  }
  if constexpr (Axes == 1) {
    return nn::PerAxis<1>(n[0]);
  } else if constexpr (Axes == 2) {
    return nn::PerAxis<2>(n[0], n[1]);
  } else {
    return nn::PerAxis<3>(n[0], n[1], n[2]);
  }
}
// The same with a number for an option that is not there.
template <int Axes>
nn::PerAxis<Axes> axes_or(JsonReader& options, const std::string& key, std::int64_t otherwise) {
  if (options.has(key)) return axes_of<Axes>(options, key);
  return nn::PerAxis<Axes>(options.get<std::int64_t>(key, otherwise));
}

PaddingMode padding_mode(JsonReader& options) {
  static const std::map<std::string, PaddingMode> modes{{"zeros", PaddingMode::Zeros},
                                                        {"reflect", PaddingMode::Reflect},
                                                        {"replicate", PaddingMode::Replicate},
                                                        {"circular", PaddingMode::Circular}};
  const auto name = options.get<std::string>("padding_mode", "zeros");
  const auto found = modes.find(name);
  if (found != modes.end()) return found->second;
  fail_description(options.where(),
                   formatted("'padding_mode' is '{}', expected zeros, reflect, replicate or circular", name));
}

template <int Axes>
void add_conv(LayerChain& chain, const std::string& name, JsonReader& o) {
  chain.append<nn::Conv<Axes>>(name, nn::ConvConfig<Axes>{.in = o.get<std::int64_t>("in"),
                                                          .out = o.get<std::int64_t>("out"),
                                                          .kernel = axes_of<Axes>(o, "kernel"),
                                                          .stride = axes_or<Axes>(o, "stride", 1),
                                                          .padding = axes_or<Axes>(o, "padding", 0),
                                                          .dilation = axes_or<Axes>(o, "dilation", 1),
                                                          .groups = o.get<std::int64_t>("groups", 1),
                                                          .bias = o.get<bool>("bias", true),
                                                          .padding_mode = padding_mode(o)});
}

template <int Axes>
void add_conv_transpose(LayerChain& chain, const std::string& name, JsonReader& o) {
  chain.append<nn::ConvTranspose<Axes>>(
      name, nn::ConvTransposeConfig<Axes>{.in = o.get<std::int64_t>("in"),
                                          .out = o.get<std::int64_t>("out"),
                                          .kernel = axes_of<Axes>(o, "kernel"),
                                          .stride = axes_or<Axes>(o, "stride", 1),
                                          .padding = axes_or<Axes>(o, "padding", 0),
                                          .output_padding = axes_or<Axes>(o, "output_padding", 0),
                                          .groups = o.get<std::int64_t>("groups", 1),
                                          .bias = o.get<bool>("bias", true),
                                          .dilation = axes_or<Axes>(o, "dilation", 1)});
}

template <int Axes>
void add_max_pool(LayerChain& chain, const std::string& name, JsonReader& o) {
  chain.append<nn::MaxPool<Axes>>(name, nn::MaxPoolConfig<Axes>{.kernel = axes_of<Axes>(o, "kernel"),
                                                                .stride = axes_or<Axes>(o, "stride", 0),
                                                                .padding = axes_or<Axes>(o, "padding", 0)});
}

template <int Axes>
void add_average_pool(LayerChain& chain, const std::string& name, JsonReader& o) {
  chain.append<nn::AvgPool<Axes>>(name, nn::AvgPoolConfig<Axes>{.kernel = axes_of<Axes>(o, "kernel"),
                                                                .stride = axes_or<Axes>(o, "stride", 0),
                                                                .padding = axes_or<Axes>(o, "padding", 0)});
}

template <class Norm>
void add_batch_norm(LayerChain& chain, const std::string& name, JsonReader& o) {
  chain.append<Norm>(name, nn::BatchNormConfig{.channels = o.get<std::int64_t>("channels"),
                                               .epsilon = o.get<double>("eps", 1e-5),
                                               .momentum = o.get<double>("momentum", 0.1)});
}

void add_upsample(LayerChain& chain, const std::string& name, JsonReader& o) {
  const auto mode = o.get<std::string>("mode", "nearest");
  if (mode != "nearest" && mode != "linear") {
    fail_description(o.where(), formatted("'mode' is '{}', expected nearest or linear", mode));
  }
  UpsampleOptions options{.mode = mode == "linear" ? Interpolation::Linear : Interpolation::Nearest};
  options.scale = {o.get<double>("scale")};
  chain.append<nn::Upsample>(name, std::move(options));
}

// Layers with options or parameters.
const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> table{
      {"Linear",
       [](LayerChain& chain, const std::string& name, JsonReader& o) {
         chain.append<nn::Linear>(name, nn::LinearConfig{.in = o.get<std::int64_t>("in"),
                                                         .out = o.get<std::int64_t>("out"),
                                                         .bias = o.get<bool>("bias", true)});
       }},
      {"Dropout", [](LayerChain& chain, const std::string& name,
                     JsonReader& o) { chain.append<nn::Dropout>(name, o.get<double>("p", 0.5)); }},
      {"Flatten", [](LayerChain& chain, const std::string& name, JsonReader&) { chain.append<nn::Flatten>(name); }},
      {"LayerNorm",
       [](LayerChain& chain, const std::string& name, JsonReader& o) {
         chain.append<nn::LayerNorm>(
             name, nn::LayerNormConfig{.shape = o.shape("shape"), .epsilon = o.get<double>("eps", 1e-5)});
       }},
      {"GroupNorm",
       [](LayerChain& chain, const std::string& name, JsonReader& o) {
         chain.append<nn::GroupNorm>(name, nn::GroupNormConfig{.groups = o.get<std::int64_t>("groups"),
                                                               .channels = o.get<std::int64_t>("channels"),
                                                               .epsilon = o.get<double>("eps", 1e-5)});
       }},
      {"LeakyReLU", [](LayerChain& chain, const std::string& name,
                       JsonReader& o) { chain.append<nn::LeakyReLU>(name, o.get<double>("negative_slope", 0.01)); }},
      {"ELU", [](LayerChain& chain, const std::string& name,
                 JsonReader& o) { chain.append<nn::ELU>(name, o.get<double>("alpha", 1.0)); }},
      {"Softplus", [](LayerChain& chain, const std::string& name,
                      JsonReader& o) { chain.append<nn::Softplus>(name, o.get<double>("beta", 1.0)); }},
      {"PixelShuffle", [](LayerChain& chain, const std::string& name,
                          JsonReader& o) { chain.append<nn::PixelShuffle>(name, o.get<std::int64_t>("factor")); }},
      {"Scale",
       [](LayerChain& chain, const std::string&, JsonReader& o) {
         const auto factor = o.get<double>("factor", 1.0), shift = o.get<double>("shift", 0.0);
         chain.append_function([factor, shift](Value x) { return scale_shift(x, factor, shift); });
       }},
      {"Softmax",
       [](LayerChain& chain, const std::string&, JsonReader& o) {
         const auto axis = static_cast<int>(o.get<std::int64_t>("dim", 1));
         chain.append_function([axis](Value x) { return softmax(x, axis); });
       }},
      {"Residual",
       [](LayerChain& chain, const std::string& name, JsonReader& o) {
         chain.append<Residual>(name, o.member("layers"), formatted("{}.layers", o.where()));
       }},
      {"Upsample", add_upsample},
      {"Conv1d", add_conv<1>},
      {"Conv2d", add_conv<2>},
      {"Conv3d", add_conv<3>},
      {"ConvTranspose1d", add_conv_transpose<1>},
      {"ConvTranspose2d", add_conv_transpose<2>},
      {"ConvTranspose3d", add_conv_transpose<3>},
      {"MaxPool1d", add_max_pool<1>},
      {"MaxPool2d", add_max_pool<2>},
      {"MaxPool3d", add_max_pool<3>},
      {"AvgPool1d", add_average_pool<1>},
      {"AvgPool2d", add_average_pool<2>},
      {"AvgPool3d", add_average_pool<3>},
      {"BatchNorm1d", add_batch_norm<nn::BatchNorm1d>},
      {"BatchNorm2d", add_batch_norm<nn::BatchNorm2d>},
      {"BatchNorm3d", add_batch_norm<nn::BatchNorm3d>},
  };
  return table;
}

// Activations without options.
const std::map<std::string, Value (*)(Value)>& functions() {
  static const std::map<std::string, Value (*)(Value)> table{{"ReLU", relu},
                                                             {"ReLU6", relu6},
                                                             {"GELU", gelu},
                                                             {"SiLU", silu},
                                                             {"Sigmoid", sigmoid},
                                                             {"Tanh", tanh},
                                                             {"Hardswish", hard_swish},
                                                             {"Hardsigmoid", hard_sigmoid},
                                                             {"Exp", lockstep::exp},
                                                             {"Square", square},
                                                             {"Sin", lockstep::sin},
                                                             {"Abs", lockstep::abs}};
  return table;
}

std::string names_of_layers() {
  std::string names;
  const auto add = [&](const auto& table) {
    for (const auto& row : table) names = names.empty() ? row.first : formatted("{}, {}", names, row.first);
  };
  add(makers());
  add(functions());
  return names;
}

}  // namespace

LayerChain::LayerChain(const nlohmann::json& list, const std::string& where) {
  if (!list.is_array() || list.empty()) fail_description(where, "expected a list of layers, at least one");
  for (std::size_t i = 0; i < list.size(); ++i) {
    JsonReader options(list[i], formatted("{}[{}]", where, i));
    const auto type = options.get<std::string>("type");
    const auto name = options.get<std::string>("name", std::to_string(i));
    if (const auto maker = makers().find(type); maker != makers().end()) {
      maker->second(*this, name, options);
    } else if (const auto function = functions().find(type); function != functions().end()) {
      append_function(function->second);
    } else {
      fail_description(options.where(), formatted("unknown type '{}', there are: {}", type, names_of_layers()));
    }
    options.finish();
  }
}

Value LayerChain::operator()(Value x) const {
  for (const auto& step : steps_) x = step(x);
  return x;
}

Value Residual::operator()(Value x) const { return x + LayerChain::operator()(x); }

}  // namespace lockstep::bindings
