// What nodes of a plan run on. A kernel is built once for one node's shapes and layouts and then only run: it allocates
// nothing, and finds its pointers in arguments that the plan prepared.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "lockstep/graph/layout.h"
#include "lockstep/graph/op.h"

namespace lockstep::kernels {

struct Arguments {
  const void* const* inputs;
  void* const* outputs;
  void* workspace;

  template <class T>
  const T* in(std::size_t i) const {
    return static_cast<const T*>(inputs[i]);
  }
  template <class T>
  T* out(std::size_t i) const {
    return static_cast<T*>(outputs[i]);
  }
  template <class T>
  T* scratch() const {
    return static_cast<T*>(workspace);
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::size_t workspace_bytes() const { return 0; }
  virtual void run(
      const Arguments& arguments) = 0;  // on the executor's thread; may use OpenMP within the thread budget
};

// What a model's owner decides about all its kernels.
struct KernelOptions {
  // Exact: no algorithm that rounds more than a direct sum does (Winograd's transforms).
  enum class ConvMath : std::uint8_t { Fast, Exact };
  ConvMath conv_math = ConvMath::Fast;
  // "": the best of all sets; or the name of one set, which is asked first: "generic", "native", "onednn". Usually a
  // literal: the text outlives the model.
  std::string_view prefer = {};
  bool operator==(const KernelOptions&) const = default;
};

struct KernelRequest {
  const Op* op;
  std::vector<Type> inputs, outputs;
  std::string place = {};  // of the node, for errors
  KernelOptions options = {};
  // For errors too: by input, the name of the model's input that it is; "" for others. Empty: none is known.
  std::vector<std::string> fields = {};

  // The op, which must be a T: throws Error where a kernel for Ts was registered for the name of another class.
  template <class T>
  const T& as() const {
    const T* typed = dynamic_cast<const T*>(op);
    if (typed == nullptr) [[unlikely]]
      fail_class(typeid(T));
    return *typed;
  }
  [[noreturn]] void fail_class(const std::type_info& expected) const;
  std::string field(std::size_t input) const { return input < fields.size() ? fields[input] : ""; }
  DType dtype() const { return outputs[0].dtype; }
  bool has_bf16() const {
    const auto is_bf16 = [](const Type& t) { return t.dtype == DType::BF16; };
    return std::ranges::any_of(inputs, is_bf16) || std::ranges::any_of(outputs, is_bf16);
  }
};

// An implementation's offer for a request: the layouts it wants and makes, before anything is built. Kernels write zero
// to the padding of their outputs and may rely on zero padding of their inputs.
struct KernelOffer {
  std::string implementation;           // "generic", or oneDNN's own name, for printed plans
  std::vector<Layout> inputs, outputs;  // one per value
  // The types in which the inputs are read, where they are not the request's (bf16 copies of f32 weights); empty: as
  // requested.
  std::vector<DType> input_dtypes = {};
  int in_place_input = -1, in_place_output = 0;  // the output may share the input's memory; -1: none may
  std::function<std::unique_ptr<Kernel>()> build;
};

// Answers a request, given the layouts in which the inputs lie: no offer, or several, the one that should be fastest
// first.
using KernelFactory = std::function<std::vector<KernelOffer>(const KernelRequest&, std::span<const Layout> offered)>;

// Makes a kernel of a function (const Arguments&).
template <class F>
std::unique_ptr<Kernel> make_kernel(F function, std::size_t workspace_bytes = 0) {
  class FunctionKernel final : public Kernel {
   public:
    FunctionKernel(F f, std::size_t bytes) : function_(std::move(f)), bytes_(bytes) {}
    std::size_t workspace_bytes() const override { return bytes_; }
    void run(const Arguments& arguments) override { function_(arguments); }

   private:
    F function_;
    std::size_t bytes_;
  };
  return std::make_unique<FunctionKernel>(std::move(function), workspace_bytes);
}

}  // namespace lockstep::kernels
