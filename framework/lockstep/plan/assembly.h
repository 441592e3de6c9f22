// From a graph to steps: which nodes are live, which kernel runs each, in which layouts values lie, where reorders go,
// and where memory is. Plan turns the result into something that runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/kernels/choice.h"
#include "lockstep/kernels/kernel.h"
#include "lockstep/plan/arena.h"
#include "lockstep/plan/gradient.h"

namespace lockstep::plan {

struct PlanBuffer {
  // Constant: depends on parameters alone, computed again when they change.
  enum class Kind : std::uint8_t { Arena, Parameter, Derived, Gradient, Constant };
  Kind kind = Kind::Arena;
  Type type;
  Layout layout;
  const Parameter* parameter = nullptr;  // Parameter, Derived, Gradient
  int alias = -1;                        // shares the memory of this buffer (a view, or computed in place)
  bool keep = false;                     // readable after the last step
  Lifetime life;                         // Arena; Gradient: scratch for adding to the slot
};

struct PlanStep {
  std::string place;
  std::string reason = "";  // of a reorder that the plan put in; its place is that of the step that it is for
  std::shared_ptr<const Op> op;
  kernels::KernelOffer offer;
  std::vector<Type> input_types, output_types;
  std::vector<int> inputs, outputs;  // buffers
  std::vector<int> sinks;            // buffers of parameter gradients that are final after this step
  double flops = 0;
  bool constant = false;  // makes Constants
};

struct Assembly {
  std::vector<PlanBuffer> buffers;
  std::vector<PlanStep> steps;
  std::map<std::string, int> inputs;  // of Node::Kind::Input
  std::vector<int> outputs;           // as requested
  std::map<const Parameter*, Layout>
      natural_layouts;  // in which gradients are made, else in which the first kernel reads

  int root(int buffer) const {
    while (buffers[static_cast<std::size_t>(buffer)].alias >= 0)
      buffer = buffers[static_cast<std::size_t>(buffer)].alias;
    return buffer;
  }
};

struct AssemblyRequest {
  const Graph& graph;
  std::vector<Value> outputs;
  std::vector<ParameterGradient> gradients;
  std::function<Layout(const Parameter*)> layout_of;  // the persistent form
  kernels::KernelOptions options = {};
  kernels::KernelChooser choose = {};  // empty: the first offer
};

Assembly assemble(const AssemblyRequest& request);
// Decides what is computed in place and sets the lifetime of every buffer.
void plan_lifetimes(Assembly& assembly);

}  // namespace lockstep::plan
