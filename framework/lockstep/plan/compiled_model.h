// A compiled model: it owns the parameter store, the arena and the plans, one per (mode, input types). A plan is
// compiled at the first request and kept. The first training plan fixes the persistent form of the parameters, so
// request the plan of the usual batch first. Compiling throws Error, alike on every rank; existing plans stay usable,
// and the next request compiles again. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "lockstep/plan/compile_options.h"
#include "lockstep/plan/plan.h"

namespace lockstep::plan {

class CompiledModel {
 public:
  // The parameters (of a Module) must outlive the model. Nothing is traced before the first plan().
  CompiledModel(std::vector<NamedParameter> parameters, ModelFunction function, ParameterStoreOptions options = {},
                CompileOptions compile = {});

  // Returns the plan for this mode and these input types, owned by the model. Mode::Train compiles the gradient too, so
  // the model function must return a loss. Throws Error where the model cannot be compiled.
  Plan& plan(Mode mode, const std::map<std::string, Type>& inputs);
  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }
  const Arena& arena() const { return arena_; }
  // Bytes of the arena, constants, parameters, gradients, optimizer state and derived copies.
  std::size_t bytes() const;
  const CompileOptions& options() const { return options_; }

 private:
  std::unique_ptr<Plan> compile(Mode mode, const std::map<std::string, Type>& inputs);
  void report_unused(const std::vector<ParameterGradient>& gradients) const;

  ModelFunction function_;
  ParameterStore store_;
  Arena arena_;
  CompileOptions options_;
  std::map<std::string, std::unique_ptr<Plan>> plans_;
};

}  // namespace lockstep::plan
