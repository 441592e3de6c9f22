// A part of a model: it owns named parameters and child modules, and its call operator (of any signature) traces ops on
// Values. Children are members of type Child (nn/child.h), which gives each a name; the names on the way from the root,
// joined with dots, are the module path, as in torchvision. A module is neither copied nor moved, and it outlives the
// CompiledModel that is made from it. One thread builds and traces a model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/graph/graph.h"

namespace lockstep::nn {

template <class M>
class Child;

class Module;

struct NamedModule {
  std::string path;  // from the module that was asked: "layer1.0.conv1"
  Module* module;    // owned by its parent
};

class Module {
 public:
  Module() = default;
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Returns all parameters with their full names: first the module's own parameters, then its own buffers, then the
  // children, depth first. This is the order of PyTorch's state_dict().
  std::vector<NamedParameter> named_parameters() const;
  // Returns all modules below this one, each before those below it.
  std::vector<NamedModule> named_modules() const;
  std::string path() const;  // the module path, "layer1.0.conv1"; empty for the root
  // Makes every parameter of this module and of the modules below it trainable, or frozen. Call it before compiling.
  void set_trainable(bool trainable);
  // Makes the normalisations of this module and below it use their running statistics in training too, and not change
  // them, as PyTorch's eval() does on a part of a model. Call it before compiling.
  virtual void freeze_statistics(bool freeze);
  // Returns the module below this one that has this path, "fc" or "layer1.0.conv1". Throws Error that lists the
  // children if there is none.
  Module& part(const std::string& path);

 protected:
  // Adds a parameter, which this module owns. Throws Error where the name is empty, has a dot, or is taken.
  Parameter& add(std::string name, Parameter parameter);
  // Gives a parameter that another module owns a second name in this module; throws as add() does.
  void tie(std::string name, Parameter& parameter);
  // While the returned object lives, the nodes that are traced in `value`'s graph carry this module's path. A Child
  // opens a scope when it is called.
  Graph::Scope scope(const Value& value) const { return Graph::Scope(value.graph(), path()); }
  // While the returned object lives, the traced nodes form one unit of recomputation (--recompute blocks): only values
  // that nodes outside read are kept for backward, such as the result of a residual block.
  static Graph::Block block(const Value& value) { return Graph::Block(value.graph()); }

 private:
  template <class M>
  friend class Child;

  struct Entry {
    std::string name;
    Parameter* parameter;
  };
  void collect(const std::string& prefix, std::vector<NamedParameter>& all) const;
  void collect(const std::string& prefix, std::vector<NamedModule>& all) const;
  void check_name(const std::string& name) const;
  void add_child(std::string name, Module& child);

  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, Module*>> children_;
  Module* parent_ = nullptr;
  std::string name_;  // in parent_; unique among its children
};

}  // namespace lockstep::nn
