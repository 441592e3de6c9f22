// The parts of the table of the native kernels, and helpers for them. These kernels support f32 and bf16 and keep the
// offered layout.
#pragma once

#include <type_traits>
#include <vector>

#include "lockstep/kernels/common/offers.h"
#include "lockstep/kernels/native/native_kernels.h"
#include "lockstep/kernels/registry.h"

namespace lockstep::kernels::native {

inline bool supported(DType dtype) { return dtype == DType::F32 || dtype == DType::BF16; }
inline bool supported(const KernelRequest& r) { return supported(r.dtype()); }

// Makes the kernel with make(tag), a float or Bf16.
template <class Make>
std::function<std::unique_ptr<Kernel>()> build_for(DType dtype, Make make) {
  return [dtype, make] { return dtype == DType::BF16 ? make(Bf16{}) : make(float{}); };
}

template <class T>
const T* input_if(bool there, const Arguments& a, std::size_t i) {
  return there ? a.in<T>(i) : nullptr;
}

// The kernel of a convolution's gradient by its weights: (x, dy) to dw and, if `bias`, to the sums of dy.
// add(arguments, arrays) sets what else a class takes. Arrays: a class of arrays that the gradient takes; its x and dy
// have the type of the images.
template <class Arrays, class Gradient, class Add>
std::unique_ptr<Kernel> weight_gradient_kernel(std::shared_ptr<const Gradient> kernel, bool bias, Add add) {
  const std::size_t scratch = kernel->workspace_bytes();
  const auto run = [kernel = std::move(kernel), bias, add](const Arguments& a) {
    using T = std::remove_cvref_t<decltype(*Arrays::x)>;
    Arrays arrays{.x = a.in<T>(0),
                  .dy = a.in<T>(1),
                  .dw = a.out<float>(0),
                  .dbias = bias ? a.out<float>(1) : nullptr,
                  .workspace = a.scratch<float>()};
    add(a, arrays);
    kernel->run(arrays);
  };
  return make_kernel(run, scratch);
}
template <class Gradient>
std::unique_ptr<Kernel> weight_gradient_kernel(std::shared_ptr<const Gradient> kernel, bool bias) {
  return weight_gradient_kernel<typename Gradient::Arrays>(std::move(kernel), bias, [](const Arguments&, auto&) {});
}

std::vector<KernelRow> batch_norm_rows();
std::vector<KernelRow> row_norm_rows();
std::vector<KernelRow> pointwise_rows();  // f64, too
std::vector<KernelRow> attention_rows();
// Where an offer of a product comes: before oneDNN's, between oneDNN's and OpenBLAS's, or behind both.
enum class Place : std::uint8_t { First, Behind, Last };
Place product_place(const KernelRequest& r);  // by the measurements in matrix_product_rule.cpp
// Linear layers and products of matrices, f32 and f64: those that belong to the place.
std::vector<KernelRow> product_rows(Place place);
void register_products(KernelRegistry& registry, Place place);
// Direct convolutions on blocks of channels. `first`: the convolutions that should be faster than oneDNN's; else all
// further ones.
void add_blocked_convolutions(KernelRegistry& registry, bool first);

}  // namespace lockstep::kernels::native
