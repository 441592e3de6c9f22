// Runs every offer of every kernel set for one node and compares each with the f64 kernels, whose loops the tests
// beside this one and the op table vouch for.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/registry.h"

namespace lockstep::sweep {

// Uniform in [-1, 1), rounded to bf16: the f64 kernels then read what f32 and bf16 kernels read.
Tensor random_values(const Shape& shape, std::uint64_t key);

// How far an element may be from its f64 value, in terms of u, half the distance of 1 to the next f32. The bound for a
// sum of n products in any order is n u sum |a b| (Higham, "Accuracy and stability of numerical algorithms", 3.5); what
// the op gives for the magnitudes of its inputs is that sum. An f32 result in bf16 is rounded once more, by 2^-8 of its
// value.
struct Tolerance {
  double roundings = 1;
  // The magnitudes with which they are multiplied: an output of the inputs' magnitudes; 1, for values of about that; or
  // the output's largest value.
  enum class Scale : std::uint8_t { Magnitudes, One, Largest } scale = Scale::Magnitudes;
};

struct Case {
  std::string name;
  std::shared_ptr<const Op> op;
  std::vector<Tensor> inputs;    // f64, or the integers that the op takes
  std::vector<bool> activation;  // by input: is of the computation's type; the others stay f32 beside bf16
  Tolerance tolerance;
};

// Tensors can be moved but not copied, so they do not fit into an initialiser list.
template <class... T>
std::vector<Tensor> list(T&&... tensors) {
  std::vector<Tensor> result;
  (result.push_back(std::forward<T>(tensors)), ...);
  return result;
}

struct Made {
  std::string implementation;
  std::vector<Tensor> outputs;  // logical order; floating ones as f64
};

// Runs one offer as a plan would: inputs in the forms that it asks for, outputs poisoned before. Expects that padding
// of outputs is 0 and that nothing is written behind them or the workspace.
Made run_offer(const kernels::KernelRequest& request, const kernels::KernelOffer& offer,
               const std::vector<Tensor>& inputs);

// With the f64 kernels.
std::vector<Tensor> reference(const Case& c);

// Every offer in f32 and in bf16, for inputs that are offered plain and in channel blocks of 8 and 16. `wide` says how
// much more an implementation may err. The implementations seen, with repetitions.
std::vector<std::string> expect_offers_agree(
    const Case& c,
    const std::function<double(const std::string& implementation)>& wide = [](const std::string&) { return 1.0; });

// Whether one of the names has this part.
inline bool any_named(const std::vector<std::string>& names, std::string_view part) {
  return std::ranges::any_of(names, [&](const std::string& n) { return n.find(part) != std::string::npos; });
}

}  // namespace lockstep::sweep
