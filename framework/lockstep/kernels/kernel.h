// Kernels run the nodes of a plan. A kernel is built once, for the shapes and layouts of one node, and then run many
// times. A run allocates nothing and reads its pointers from arguments that the plan prepared. The plan owns kernels.
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
#include "lockstep/kernels/options.h"

namespace lockstep::kernels {

// The pointers of one node, in the order of the op's inputs and outputs; `workspace` has workspace_bytes() bytes. The
// typed accessors do not check the type.
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
  // Bytes of scratch memory that a run needs; the plan provides it.
  virtual std::size_t workspace_bytes() const { return 0; }
  // Computes the outputs, on the thread that runs the plan; may use that thread's OpenMP threads.
  virtual void run(const Arguments& arguments) = 0;
};

// A request for a kernel of one node. `op` must outlive the request.
struct KernelRequest {
  const Op* op;
  std::vector<Type> inputs, outputs;
  std::string path = {};  // the module path of the node, for errors
  KernelOptions options = {};
  // For errors: by input, the name of the model input that the node reads there; "" for other values. Empty: unknown.
  std::vector<std::string> fields = {};

  // Returns the op as a T. Throws Error if it is of another class: a kernel for T was registered under the name of that
  // class.
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
  bool wants_portable() const { return options.bits == KernelOptions::Bits::Portable; }
  bool has_bf16() const {
    const auto is_bf16 = [](const Type& t) { return t.dtype == DType::BF16; };
    return std::ranges::any_of(inputs, is_bf16) || std::ranges::any_of(outputs, is_bf16);
  }
};

// An offer to run a request: the layouts that the implementation reads and writes. The kernel itself is built later. A
// kernel writes zero to the padding of its outputs and may rely on zero padding of its inputs. With infinite values
// both end: infinity times a weight of zero is NaN, in the padding, too.
struct KernelOffer {
  std::string implementation;           // for printed plans: "generic", or the name that oneDNN gives
  std::vector<Layout> inputs, outputs;  // one per value
  // The types in which the kernel reads the inputs, if they differ from the request's (bf16 copies of f32 weights);
  // empty: the request's types.
  std::vector<DType> input_dtypes = {};
  int in_place_input = -1, in_place_output = 0;  // this output may share this input's memory; -1: none may
  // The promise of --bits portable: the result has the same bits at every level of instructions, on any number of
  // threads, with every compiler and on every processor with IEEE arithmetic. The order of each sum then follows from
  // shapes alone; multiply-adds are fused at every level or at none; functions are those of core/math.h. Whether the
  // kernel is offered, and in which layouts, must follow from the request alone, too.
  bool portable = false;
  // There is a kernel as fast as this one that normalises an input where it reads the input: for input 0 of a
  // convolution or its gradient by the weight (ops/convolution_of_norm.h), for the residual of a batch norm
  // (ops/batch_norm2d_sum.h).
  bool normalises = false;
  std::function<std::unique_ptr<Kernel>()> build;
};

// Answers a request with offers, the one that should be fastest first; no offer means that the implementation does not
// support the request. `offered` are the layouts in which the inputs lie.
using KernelFactory = std::function<std::vector<KernelOffer>(const KernelRequest&, std::span<const Layout> offered)>;

// Makes a kernel whose run() calls function(const Arguments&).
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
