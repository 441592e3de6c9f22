#include "lockstep/plan/trace.h"

#include "lockstep/core/error.h"

namespace lockstep::plan {

Inputs::Inputs(Graph& graph, const std::map<std::string, Type>& types) : graph_(graph) {
  for (const auto& [name, type] : types) {
    check(!name.starts_with('@'), "model", "an input is named '{}': names that begin with '@' are reserved", name);
    values_[name] = graph.input(name, type);
  }
}

Value Inputs::operator[](const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    std::string names;
    for (const auto& [n, v] : values_) names += (names.empty() ? "" : ", ") + n;
    fail("model", "there is no input '{}'; the batch has: {}", name, names);
  }
  return found->second;
}

}  // namespace lockstep::plan
