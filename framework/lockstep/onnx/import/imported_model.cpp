#include "lockstep/onnx/import/imported_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/nn/init.h"
#include "lockstep/onnx/document.h"
#include "lockstep/onnx/import/node_reader.h"

namespace lockstep::onnx {
namespace {

const std::map<std::string_view, Reading>& readings() {
  static const std::map<std::string_view, Reading> table = [] {
    std::map<std::string_view, Reading> all;
    for (const auto subject : {constant_readings(), pointwise_readings(), window_readings(), product_readings(),
                               norm_readings(), shape_readings(), element_readings(), reduction_readings()}) {
      for (const Reading& reading : subject) all.emplace(reading.op, reading);
    }
    return all;
  }();
  return table;
}

// Whether input `i` of an operator is a list of numbers that say what it does, and no data.
bool is_option(const std::string& op, std::size_t i) {
  struct Option {
    std::string_view op;
    std::size_t first;
  };
  static constexpr std::array kOptions{Option{"Resize", 1}, Option{"Upsample", 1}, Option{"Pad", 1}, Option{"Clip", 1},
                                       Option{"Dropout", 1}};
  const auto* const found = std::ranges::find(kOptions, std::string_view(op), &Option::op);
  return found != kOptions.end() && i >= found->first;
}

Role role_of(const FileNode& node, std::size_t i, const Tensor& tensor) {
  const bool is_norm = node.op.ends_with("Normalization");
  if (is_norm && i >= 3) return Role::Buffer;
  if (is_norm) return Role::Norm;
  return tensor.shape().rank() > 1 ? Role::Weight : Role::Bias;
}

bool is_uniform(const Tensor& tensor) {
  const auto same = [](auto values) {
    return std::ranges::all_of(values, [&](auto value) { return value == values.front(); });
  };
  return tensor.dtype() == DType::F64 ? same(tensor.data<double>()) : same(tensor.data<float>());
}

// A name that checkpoints can have: dots separate modules, and no part is empty.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts{""};
  for (const char c : name) {
    if (c == '.' && !parts.back().empty()) {
      parts.emplace_back();
    } else {
      parts.back() += c == '/' || c == '.' ? '_' : c;
    }
  }
  if (parts.back().empty()) parts.back() = "_";
  return parts;
}

Initializer values_of(FileTensor tensor) {
  return [tensor = std::move(tensor)](const Shape&, std::span<double> values, RandomStream&) {
    if (tensor->dtype() == DType::F64) {
      std::ranges::copy(tensor->data<double>(), values.begin());
    } else {
      std::ranges::copy(tensor->data<float>(), values.begin());
    }
  };
}

void check_node(const FileNode& node) {
  const auto found = readings().find(node.op);
  if (found == readings().end() && is_folded(node.op)) return;
  if (found == readings().end()) {
    std::string names;
    for (const auto& [name, reading] : readings()) names += formatted("{}{}", names.empty() ? "" : ", ", name);
    fail(kSite, "node {}: the operator {} has no form here, expected one of {}", node.name, node.op, names);
  }
  for (const auto& [name, value] : node.attributes) {
    if (std::ranges::find(found->second.attributes, name) != found->second.attributes.end()) continue;
    fail(kSite, "node {} ({}): the attribute {} has no form here", node.name, node.op, name);
  }
}

}  // namespace

// A module that only has a name: "layer1" of "layer1.0.conv1.weight".
class ImportedGraph::Part : public nn::Module {
 public:
  Parameter& add_parameter(std::string name, Parameter parameter) { return add(std::move(name), std::move(parameter)); }
};

ImportedGraph::ImportedGraph(const std::filesystem::path& file, nn::Module& owner, const Add& add)
    : file_(read_model_file(file)), owner_(owner), add_(add) {
  for (const FileNode& node : file_.nodes) check_node(node);
  add_parameters();
  add_counters();
}

ImportedGraph::~ImportedGraph() = default;

void ImportedGraph::add_parameters() {
  for (const FileNode& node : file_.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto found = file_.tensors.find(node.inputs[i]);
      if (found == file_.tensors.end() || is_option(node.op, i) || parameters_.contains(node.inputs[i])) continue;
      const Tensor& tensor = *found->second;
      if (!is_floating(tensor.dtype()) || tensor.shape().rank() == 0) continue;
      add_parameter(found->first, found->second, role_of(node, i, tensor));
    }
    // A constant of different numbers is a buffer, as a graph has no other place for it.
    const auto value = node.attributes.find("value");
    if (node.op != "Constant" || value == node.attributes.end() || value->second.tensor == nullptr) continue;
    const FileTensor& tensor = value->second.tensor;
    if (is_floating(tensor->dtype()) && !is_uniform(*tensor)) add_parameter(node.outputs.front(), tensor, Role::Buffer);
  }
}

void ImportedGraph::add_parameter(const std::string& name, const FileTensor& tensor, Role role) {
  // Lockstep's export has the tables with which it resamples as tensors of such names.
  if (name.starts_with(kConstantName)) role = Role::Buffer;
  const Parameter& added = add_at(
      name,
      {.shape = tensor->shape(), .initialize = values_of(tensor), .role = role, .trainable = role != Role::Buffer});
  parameters_[name] = &added;
  types_[&added] = tensor->dtype();
}

DType ImportedGraph::type_of(const Parameter& parameter) const {
  const auto found = types_.find(&parameter);
  return found == types_.end() ? DType::F32 : found->second;
}

// Norms whose statistics are parameters count their updates, beside the mean: "bn1.num_batches_tracked".
void ImportedGraph::add_counters() {
  for (const FileNode& node : file_.nodes) {
    if (node.op != "BatchNormalization" || node.inputs.size() < 5) continue;
    const bool known = std::all_of(node.inputs.begin() + 1, node.inputs.begin() + 5,
                                   [&](const std::string& name) { return parameters_.contains(name); });
    if (!known) continue;
    const std::string& mean = node.inputs[3];
    const std::size_t dot = mean.rfind('.');
    const std::string name = (dot == mean.npos ? mean + "_" : mean.substr(0, dot + 1)) + "num_batches_tracked";
    counters_[node.outputs.front()] = &add_at(name, {.shape = Shape{},
                                                     .initialize = nn::constant(0),
                                                     .role = Role::Buffer,
                                                     .trainable = false,
                                                     .is_integer = true});
  }
}

Parameter& ImportedGraph::add_at(const std::string& name, Parameter parameter) {
  const std::vector<std::string> parts = parts_of(name);
  if (parts.size() == 1) return add_(parts.front(), std::move(parameter));
  std::string path;
  nn::Module* parent = &owner_;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    path += (i == 0 ? "" : ".") + parts[i];
    auto& part = parts_[path];
    if (part == nullptr) part = std::make_unique<nn::Child<Part>>(parent, parts[i]);
    parent = part.get();
  }
  return parts_.at(path)->add_parameter(parts.back(), std::move(parameter));
}

void ImportedGraph::trace_nodes(Tracing& tracing, const std::vector<Value>& inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) tracing.operands[file_.inputs[i].name] = {.value = inputs[i]};
  for (const auto& [name, tensor] : file_.tensors) {
    const auto found = parameters_.find(name);
    tracing.operands[name] = {.constant = tensor, .parameter = found == parameters_.end() ? nullptr : found->second};
  }
  for (const FileNode& node : file_.nodes) {
    const Graph::Scope scope(tracing.graph, node.name);
    const NodeReader reader(node, tracing);
    if (!fold(reader)) {
      const auto reading = readings().find(node.op);
      reader.require(reading != readings().end(), "an input is known only when the model runs, expected constants");
      reading->second.read(reader);
    }
    const auto buffer = parameters_.find(node.outputs.front());  // of a Constant
    if (buffer != parameters_.end()) tracing.operands[node.outputs.front()].parameter = buffer->second;
  }
}

std::vector<Value> ImportedGraph::trace(const std::vector<Value>& inputs) const {
  check(!inputs.empty() && inputs.size() == file_.inputs.size(), kSite, "{} inputs are given, and {} has {}",
        inputs.size(), file_.path.string(), file_.inputs.size());
  Graph& graph = inputs.front().graph();
  const FileValue& first = file_.inputs.front();
  Tracing tracing{.graph = graph,
                  .operators = file_.operators,
                  .batch_before = first.dims.empty() ? -1 : first.dims.front(),
                  .batch = inputs.front().shape().rank() == 0 ? 1 : inputs.front().shape()[0],
                  .counters = counters_};
  // A file for a fixed number of samples tells by a trace with that number which axes of its values have the samples.
  const std::unique_ptr<Graph> same = graph.empty_copy();
  Tracing before{.graph = *same,
                 .operators = file_.operators,
                 .batch_before = tracing.batch_before,
                 .batch = tracing.batch_before,
                 .counters = counters_};
  if (tracing.batch_before > 0 && tracing.batch_before != tracing.batch) {
    std::vector<Value> as_before;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Type type = inputs[i].type();
      if (type.shape.rank() > 0 && type.shape[0] == tracing.batch) type.shape[0] = tracing.batch_before;
      as_before.push_back(same->input(file_.inputs[i].name, type));
    }
    trace_nodes(before, as_before);
    tracing.before = &before.operands;
  }
  trace_nodes(tracing, inputs);
  std::vector<Value> outputs;
  for (const FileValue& output : file_.outputs) {
    const auto found = tracing.operands.find(output.name);
    check(found != tracing.operands.end() && found->second.value, kSite, "{}: no node computes the output {}",
          file_.path.string(), output.name);
    outputs.push_back(found->second.value);
  }
  return outputs;
}

std::vector<io::NamedTensor> initial_weights(const std::filesystem::path& file) {
  const ImportedModel model(file);
  std::vector<io::NamedTensor> weights;
  RandomStream unused(0, 0);
  for (const NamedParameter& named : model.named_parameters()) {
    if (named.parameter->is_integer) continue;
    Tensor exact(named.parameter->shape, DType::F64);
    named.parameter->initialize(exact.shape(), exact.data<double>(), unused);
    weights.push_back({named.name, exact.to(model.graph().type_of(*named.parameter))});
  }
  return weights;
}

ImportedModel::ImportedModel(const std::filesystem::path& file)
    : graph_(file, *this, [this](std::string name, Parameter parameter) -> Parameter& {
        return add(std::move(name), std::move(parameter));
      }) {}

}  // namespace lockstep::onnx
