// A member of a module that is a child of that module. Its declaration says type, name and configuration in one line:
//
//   nn::Child<nn::Conv2d> conv1{this, "conv1", {.in = 3, .out = 6, .kernel = 5}};
//
// The child registers itself with the parent, so children are registered in the order of their declaration. The nodes
// that a call of the child traces carry the child's module path. A child is neither copied nor moved; a child that is
// destroyed before its parent is removed from the parent's list.
#pragma once

#include <concepts>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/graph/module_path.h"
#include "lockstep/nn/module.h"

namespace lockstep::nn {

// The type of a configuration in braces: the module's Config, if the module has one.
template <class M>
struct ConfigOf {
  struct None {
    None() = delete;
  };
  using type = None;
};
template <class M>
requires requires { typename M::Config; }
struct ConfigOf<M> {
  using type = typename M::Config;
};

template <class M>
class Child final : public M {
  static_assert(std::derived_from<M, Module>, "a child is a module");

 public:
  // Throws Error where `name` is empty, has a dot, or is the name of another parameter or child of `parent`.
  Child(Module* parent, const std::string& name, typename ConfigOf<M>::type config) : M(std::move(config)) {
    parent->add_child(name, *this);
  }
  template <class... Args>
  requires std::constructible_from<M, Args...> Child(Module* parent, const std::string& name, Args&&... args)
      : M(std::forward<Args>(args)...) {
    parent->add_child(name, *this);
  }

  // Calls the module; the traced nodes get its module path.
  template <class... Args>
  requires std::invocable<const M&, Args...>
  auto operator()(Args&&... args) const {
    const auto in_scope = scope_of(args...);
    return M::operator()(std::forward<Args>(args)...);
  }
  template <class... Args>
  requires(std::invocable<M&, Args...> && !std::invocable<const M&, Args...>) auto operator()(Args&&... args) {
    const auto in_scope = scope_of(args...);
    return M::operator()(std::forward<Args>(args)...);
  }

 private:
  template <class First, class... Rest>
  Graph::Scope scope_of(const First& first, const Rest&...) const {
    if constexpr (std::convertible_to<const First&, const Value&>) {
      return this->scope(first);
    } else {
      check(std::begin(first) != std::end(first), "module", "{}: called with no values, expected at least one",
            path_or_model(this->path()));
      return this->scope(*std::begin(first));  // a range of values
    }
  }
};

}  // namespace lockstep::nn
