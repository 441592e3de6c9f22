// Turns a graph into steps: it decides which nodes are live, which kernel runs each, the layouts of values, where
// reorders are needed, and which values share memory. Plan makes the result executable.
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
  // Constant: depends on parameters alone; computed again after they changed.
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
  std::string path;         // module path; for a reorder, that of the step that needs it
  std::string reason = "";  // of a reorder that the plan inserted, or of a node that a pass left as it is
  std::shared_ptr<const Op> op;
  kernels::KernelOffer offer;
  std::vector<Type> input_types, output_types;
  std::vector<int> inputs, outputs;  // buffers
  std::vector<int> sinks;            // buffers of parameter gradients that are final after this step
  double flops = 0;
  bool constant = false;  // its outputs are Constants
  bool anew = false;      // computed in each run, though it reads parameters alone
};

struct Assembly {
  std::vector<PlanBuffer> buffers;
  std::vector<PlanStep> steps;
  std::map<std::string, int> inputs;  // of Node::Kind::Input
  std::vector<int> outputs;           // as requested
  std::map<const Parameter*, Layout>
      natural_layouts;  // the layout in which the gradient is made, else that of the first kernel that reads it

  // Returns the name of the graph input that a step reads there, as it is or in another form; "": another value.
  std::string field(const PlanStep& step, std::size_t input) const;
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
  // Whether earlier plans keep a copy of a parameter in this form; empty: this is the first plan.
  std::function<bool(const Parameter*, const Layout&, DType)> has_copy = {};
};

Assembly assemble(const AssemblyRequest& request);
// Decides which steps compute in place, and sets the lifetime of every buffer.
void plan_lifetimes(Assembly& assembly);

}  // namespace lockstep::plan
