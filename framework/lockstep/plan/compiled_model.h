// A model made to run: its parameters and its plans, one per (mode, input types), compiled when first asked for and
// kept. The first training plan fixes the parameters' persistent form, so ask for the nominal one first. Throws Error
// at compile time, alike on every rank; plans that are there stay usable, and the next call compiles anew. One thread
// at a time.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "lockstep/plan/plan.h"
#include "lockstep/plan/recompute.h"

namespace lockstep::plan {

enum class Unused : std::uint8_t { Error, Ignore };  // trainable parameters that the loss does not depend on

struct CompileOptions {
  // Products and convolutions in bf16, beside f32 parameters; the activations between them follow.
  bool bf16 = false;
  bool fuse = true;
  // At inference batch norm joins the convolution before it. Costs a second copy of those weights, which a model that
  // is trained does without.
  bool fold = true;
  Recompute recompute = Recompute::Norms;
  kernels::KernelOptions kernels = {};
  kernels::KernelChooser choose = {};  // empty: by the kernels' static rules
  Unused unused = Unused::Error;
  Synchronisation synchronisation = {};  // with whom nodes of training plans sum over ranks
};

class CompiledModel {
 public:
  CompiledModel(std::vector<NamedParameter> parameters, ModelFunction function, ParameterStoreOptions options = {},
                CompileOptions compile = {});

  // Mode::Train compiles the gradient too, so the model function must return a loss.
  Plan& plan(Mode mode, const std::map<std::string, Type>& inputs);
  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }
  const Arena& arena() const { return arena_; }
  // Arena, constants, parameters with gradients, optimizer state and derived copies.
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
