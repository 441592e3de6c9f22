#include "lockstep/graph/graph.h"

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/graph/module_path.h"

namespace lockstep {

void Value::fail_empty() {
  fail("graph", "an empty Value was used, expected the result of an op, an input or a parameter");
}

const Type& Value::type() const { return graph().node(*this).outputs[static_cast<std::size_t>(index_)]; }

std::vector<Value> Op::gradient(const Request& request) const {
  constexpr std::string_view kScope = "grad ";  // gradients are traced in the scope "grad PATH" (ops/gradient.cpp)
  std::string_view path = request.inputs.empty() ? "" : std::string_view(request.inputs[0].graph().path());
  while (path.starts_with(kScope)) path.remove_prefix(kScope.size());
  fail(name(),
       "{}: this op has no gradient, and the loss or a gradient() depends on it; override gradient() in its class, or "
       "use an op that has a gradient",
       path);
}

double Op::flops(std::span<const Type>, std::span<const Type> outputs) const {
  return outputs.empty() ? 0 : static_cast<double>(outputs[0].shape.elements());
}

Value Graph::input(const std::string& name, Type type) {
  if (const auto found = inputs_.find(name); found != inputs_.end()) {
    check(found->second.type() == type, "graph", "input '{}' was {}, now {}", name, found->second.type().str(),
          type.str());
    return found->second;
  }
  Node node;
  node.kind = Node::Kind::Input;
  node.path = name;
  node.outputs = {std::move(type)};
  nodes_.push_back(std::move(node));
  return inputs_[name] = Value(this, static_cast<int>(nodes_.size()) - 1, 0);
}

Value Graph::parameter(const Parameter& parameter) {
  if (const auto found = parameters_.find(&parameter); found != parameters_.end()) return found->second;
  Node node;
  node.kind = Node::Kind::Parameter;
  node.parameter = &parameter;
  node.path = path_;
  node.outputs = {{parameter.shape, parameter.is_integer ? DType::I64 : dtype()}};
  nodes_.push_back(std::move(node));
  return parameters_[&parameter] = Value(this, static_cast<int>(nodes_.size()) - 1, 0);
}

std::vector<Value> Graph::apply(std::shared_ptr<const Op> op, std::vector<Value> inputs) {
  std::vector<Type> types;
  types.reserve(inputs.size());
  for (const Value& v : inputs) {
    types.push_back(v.type());
    check(&v.graph() == this, op->name(), "{}: an input belongs to another graph", path_or_model(path_));
  }
  Node node;
  node.path = path_or_model(path_);
  node.block = block_;
  node.outputs = op->infer(node.path, types);
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  nodes_.push_back(std::move(node));
  std::vector<Value> outputs;
  for (std::size_t i = 0; i < nodes_.back().outputs.size(); ++i) {
    outputs.emplace_back(this, static_cast<int>(nodes_.size()) - 1, static_cast<int>(i));
  }
  return outputs;
}

std::uint64_t Graph::random_key(std::string_view call_site) {
  const std::uint64_t first = mix(seed(), hash_name(call_site)), before = keys_taken_[std::string(call_site)]++;
  return before == 0 ? first : mix(first, before);
}

void Graph::observe(const std::string& name, Value value) {
  check(observed_.emplace(name, value).second, "graph", "'{}' is observed twice", name);
}

Value observe(const std::string& name, Value value) {
  check(static_cast<bool>(value), "graph", "'{}' is observed, but the Value is empty", name);
  Graph& graph = value.graph();
  graph.observe(graph.path().empty() ? name : graph.path() + "." + name, value);
  return value;
}

Value apply_op(std::shared_ptr<const Op> op, std::vector<Value> inputs) {
  check(!inputs.empty() && inputs[0], op->name(), "the first input is an empty Value");
  Graph& graph = inputs[0].graph();
  return graph.apply(std::move(op), std::move(inputs))[0];
}

}  // namespace lockstep
