#include "tests/ops/checks.h"

#include <algorithm>
#include <numeric>

#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"

namespace lockstep::optest {
namespace {

Array spaced_values(const Operand& operand, std::uint64_t key) {
  Array array(operand.shape);
  std::vector<std::int64_t> order(array.values.size());
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(key, 5);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(i))]);
  const double step = (operand.high - operand.low) / static_cast<double>(order.size());
  // 0.37 rather than the middle: the middle of an odd number of cells around zero is zero.
  for (std::size_t i = 0; i < order.size(); ++i)
    array.values[i] = operand.low + (static_cast<double>(order[i]) + 0.37) * step;
  return array;
}

Array to_array(const Tensor& tensor) {
  Array array(tensor.shape());
  const Tensor wide = tensor.dtype() == DType::F64 ? tensor.clone() : tensor.to(DType::F64);
  std::ranges::copy(wide.data<double>(), array.values.begin());
  return array;
}

std::string name_of_operand(std::size_t i) { return "operand" + std::to_string(i); }

}  // namespace

RowModel::RowModel(const Row& row, DType dtype) : row_(row), dtype_(dtype) {
  for (std::size_t i = 0; i < row.operands.size(); ++i) {
    operands_.push_back(spaced_values(row.operands[i], i + 1));
    parameters_.push_back(
        {.shape = row.operands[i].shape,
         .initialize = [values = operands_.back().values](const Shape&, std::span<double> to, RandomStream&) {
           std::ranges::copy(values, to.begin());
         }});
    if (i < row.constant.size() && row.constant[i]) parameters_.back().trainable = false;
  }
  Graph shapes(Mode::Train, dtype);
  const Shape output = trace(shapes).shape();
  parameters_.push_back({.shape = output,
                         .initialize =
                             [](const Shape&, std::span<double> to, RandomStream& random) {
                               for (double& v : to) v = random.uniform(-1, 1);
                             },
                         .trainable = false});

  std::vector<NamedParameter> named;
  for (std::size_t i = 0; i < parameters_.size(); ++i) named.push_back({name_of_operand(i), &parameters_[i]});
  const auto function = [this](const plan::Inputs& inputs) {
    Graph& graph = inputs.graph();
    const Value y = trace(graph);
    graph.observe("output", y);
    return plan::Traced{.loss = {sum(y * graph.parameter(parameters_.back())), fill(graph, {Shape{}, dtype_}, 1)}};
  };
  model_ = std::make_unique<plan::CompiledModel>(std::move(named), function,
                                                 plan::ParameterStoreOptions{.dtype = dtype, .seed = 3});
  std::map<std::string, Type> inputs;
  if (!row.targets.empty()) inputs["target"] = {Shape{static_cast<std::int64_t>(row.targets.size())}, DType::I32};
  plan_ = &model_->plan(Mode::Train, inputs);
}

Value RowModel::trace(Graph& graph) const {
  if (!row_.targets.empty()) graph.input("target", {Shape{static_cast<std::int64_t>(row_.targets.size())}, DType::I32});
  std::vector<Value> values;
  for (std::size_t i = 0; i < row_.operands.size(); ++i) values.push_back(graph.parameter(parameters_[i]));
  return row_.trace(values);
}

void RowModel::write(std::size_t operand, const Array& values) {
  model_->parameters().write(name_of_operand(operand), Tensor::from<double>(values.shape, values.values));
  model_->parameters().refresh();
}

void RowModel::run() {
  if (void* target = plan_->input("target")) std::ranges::copy(row_.targets, static_cast<std::int32_t*>(target));
  if (void* step = plan_->input(Graph::kStep)) *static_cast<std::int64_t*>(step) = 7;
  if (void* ids = plan_->input(Graph::kSampleIds)) {
    const std::int64_t n = plan_->input_type(Graph::kSampleIds)->shape.elements();
    std::iota(static_cast<std::int64_t*>(ids), static_cast<std::int64_t*>(ids) + n, 100);
  }
  plan_->run();
}

Array RowModel::output() const { return to_array(plan_->observed("output")); }

Array RowModel::gradient(std::size_t operand) const {
  return to_array(model_->parameters().read_gradient(name_of_operand(operand)));
}

std::vector<std::string> RowModel::ops() const {
  Graph graph(Mode::Train, dtype_);
  trace(graph);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op) names.emplace_back(node.op->name());
  }
  return names;
}

}  // namespace lockstep::optest
