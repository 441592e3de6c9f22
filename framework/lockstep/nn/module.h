// A part of a model: it owns named parameters and child modules, and its call operator (of any signature) traces ops on
// Values. Children are members of type Child (nn/child.h), which says their name; names join with dots to
// torchvision's. Modules stay where they are built (no copy, no move), and outlive what is compiled from them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/graph/graph.h"

namespace lockstep::nn {

template <class M>
class Child;

class Module {
 public:
  Module() = default;
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Own parameters, own buffers, then children, depth first: the order of PyTorch's state_dict().
  std::vector<NamedParameter> named_parameters() const;
  std::string path() const;  // "layer1.0.conv1"; empty for the root
  // Freezes or thaws every parameter below this module; before compiling.
  void set_trainable(bool trainable);
  // From now on the normalisations below this module use their running statistics in training too and leave them alone,
  // as PyTorch's eval() on a frozen part; before compiling.
  virtual void freeze_statistics(bool freeze);
  // The module below this one of that path, "fc" or "layer1.0.conv1"; throws Error listing the children there are.
  Module& part(const std::string& path);

 protected:
  Parameter& add(std::string name, Parameter parameter);
  void tie(std::string name, Parameter& parameter);  // another name for a parameter that some module owns
  // While it lives, nodes that are traced in `value`'s graph carry this module's path. Calling a Child opens it.
  Graph::Scope scope(const Value& value) const { return Graph::Scope(value.graph(), path()); }
  // While it lives, nodes are one unit of recomputation (--recompute blocks): of a residual block only its result is
  // kept for backward.
  static Graph::Block block(const Value& value) { return Graph::Block(value.graph()); }

 private:
  template <class M>
  friend class Child;

  struct Entry {
    std::string name;
    Parameter* parameter;
  };
  void collect(const std::string& prefix, std::vector<NamedParameter>& all) const;
  void check_name(const std::string& name) const;
  void add_child(std::string name, Module& child);

  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, Module*>> children_;
  Module* parent_ = nullptr;
  std::string name_;  // among the children of parent_
};

}  // namespace lockstep::nn
