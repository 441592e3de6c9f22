#include "lockstep/plan/gradient.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/gradient.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/table.h"

namespace lockstep::plan {

std::vector<ParameterGradient> append_gradient(Graph& graph, const Loss& loss, std::int64_t batch) {
  check(static_cast<bool>(loss.mean), "loss", "the model function returned no loss");
  check(loss.mean.shape().elements() == 1, "loss", "the loss is {}, expected a scalar: take mean() or sum() of it",
        loss.mean.type().str());
  std::vector<Value> parameters;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const bool dense = node.kind == Node::Kind::Parameter && node.parameter->trainable;
    if (dense || trainable_table(node) != nullptr) parameters.push_back(graph.value(static_cast<int>(i), 0));
  }
  // With the weight as seed this is the gradient of weight * mean; the factor 1/weight of the mean then cancels
  // exactly.
  const Value seed = loss.weight ? loss.weight : fill(graph, loss.mean.type(), static_cast<double>(batch));
  const std::vector<Value> gradients = append_gradients(loss.mean, seed, parameters);
  std::vector<ParameterGradient> result;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (gradients[k]) result.push_back({graph.node(parameters[k]).parameter, gradients[k]});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.value.node() < b.value.node(); });
  return result;
}

}  // namespace lockstep::plan
