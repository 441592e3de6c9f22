// Applies modules and functions Value -> Value one after the other. Their names are "0", "1", ..., as in PyTorch. A
// Sequential owns its modules. One thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/nn/child.h"

namespace lockstep::nn {

class Sequential : public Module {
 public:
  // Constructs an M from the arguments and appends it.
  template <class M, class... Args>
  Sequential& append(Args&&... args) {
    auto module = std::make_unique<Child<M>>(this, std::to_string(steps_.size()), std::forward<Args>(args)...);
    steps_.push_back([m = module.get()](Value x) { return (*m)(x); });
    modules_.push_back(std::move(module));
    return *this;
  }
  // Appends a function. It takes a number too, as nn.ReLU does in PyTorch, so that the names of later modules agree.
  Sequential& append(std::function<Value(Value)> function) {
    steps_.push_back(std::move(function));
    return *this;
  }
  Value operator()(Value x) const {
    for (const auto& step : steps_) x = step(x);
    return x;
  }
  std::size_t size() const { return steps_.size(); }

 private:
  std::vector<std::unique_ptr<Module>> modules_;
  std::vector<std::function<Value(Value)>> steps_;
};

}  // namespace lockstep::nn
