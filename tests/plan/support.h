// Shared by the tests of plans: small models of bare parameters, their inputs, and what errors say.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep {

// f() throws an Error that contains `text`.
template <class F>
void expect_error(const F& f, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "no error; expected '" << text << "'";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

// Parameters with addresses that stay, drawn from a normal distribution.
class Parameters {
 public:
  Parameter& add(const std::string& name, Shape shape, Role role = Role::Weight) {
    parameters_.push_back({.shape = std::move(shape),
                           .initialize =
                               [](const Shape&, std::span<double> values, RandomStream& random) {
                                 for (double& v : values) v = 0.5 * random.normal();
                               },
                           .role = role});
    named_.push_back({name, &parameters_.back()});
    return parameters_.back();
  }
  const std::vector<NamedParameter>& named() const { return named_; }

 private:
  std::deque<Parameter> parameters_;
  std::vector<NamedParameter> named_;
};

// Fills a floating input with numbers that depend on its name and `seed`.
template <class T>
void fill_input(plan::Plan& plan, const std::string& name, std::uint64_t seed = 1) {
  RandomStream random(seed, hash_name(name));
  auto* to = static_cast<T*>(plan.input(name));
  const Type* type = plan.input_type(name);
  ASSERT_NE(type, nullptr) << name;
  for (std::int64_t i = 0; i < type->shape.elements(); ++i) to[i] = static_cast<T>(random.normal());
}

inline std::vector<double> values_of(const Tensor& tensor) {
  const Tensor wide = tensor.dtype() == DType::F64 ? tensor.clone() : tensor.to(DType::F64);
  return {wide.data<double>().begin(), wide.data<double>().end()};
}

// The distance of two vectors over the size of the wanted one, in the 2-norm.
inline double distance(const std::vector<double>& got, const std::vector<double>& want) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(difference / size);
}

}  // namespace lockstep
