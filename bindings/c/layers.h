// A chain of layers from its description: a list of objects {"type": NAME, "name": ..., options}. Types and options
// have PyTorch's names, and the parameters PyTorch's; without "name" a layer has its number, as in nn.Sequential. One
// thread builds and traces.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/nn/child.h"

namespace lockstep::bindings {

class LayerChain : public nn::Module {
 public:
  // Throws CodedError for a list that describes no layers. `where` names the list in messages.
  LayerChain(const nlohmann::json& list, const std::string& where);
  Value operator()(Value x) const;

  // Constructs a layer of type M as a child with this name, and appends it.
  template <class M, class... Args>
  void append(const std::string& name, Args&&... args) {
    auto layer = std::make_unique<nn::Child<M>>(this, name, std::forward<Args>(args)...);
    steps_.push_back([m = layer.get()](Value x) { return (*m)(x); });
    layers_.push_back(std::move(layer));
  }
  void append_function(std::function<Value(Value)> function) { steps_.push_back(std::move(function)); }

 private:
  std::vector<std::unique_ptr<nn::Module>> layers_;
  std::vector<std::function<Value(Value)>> steps_;
};

// x + f(x), where f is a chain of layers.
class Residual : public LayerChain {
 public:
  using LayerChain::LayerChain;
  Value operator()(Value x) const;
};

}  // namespace lockstep::bindings
