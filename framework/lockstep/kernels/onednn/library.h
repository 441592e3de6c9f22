// The calls whose form differs between oneDNN 2.6 and 3.x. CMake compiles library_v2.cpp or library_v3.cpp, by the
// version of the header that it finds. A primitive descriptor is empty where oneDNN does not support the problem; some
// of these calls throw dnnl::error with the status dnnl_unimplemented for it.
#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "lockstep/graph/layout.h"

namespace lockstep::kernels::onednn {

// How a memory descriptor lays out its elements.
struct MemoryBlocking {
  std::vector<std::int64_t> dims, padded, strides;  // by dimension; strides between blocks
  std::vector<Layout::Block> blocks;                // outermost first
};
// nullopt for a descriptor with further properties: packed weights, compensation, an offset.
std::optional<MemoryBlocking> blocking_of(const dnnl::memory::desc& descriptor);
// nullopt where this version has no descriptor for the layout. 3.x knows layouts by name only.
std::optional<dnnl::memory::desc> descriptor_of(const Shape& shape, const Layout& layout,
                                                dnnl::memory::data_type data_type);
dnnl::memory::data_type data_type_of(const dnnl::memory::desc& descriptor);

// The memory of a convolution or an inner product; in a weight gradient `weight` and `bias` are the gradients. An empty
// bias: none.
struct ProductMemory {
  dnnl::memory::desc x, weight, bias, y;
};

struct ConvolutionWindow {
  dnnl::memory::dims stride, dilation, padding;  // by axis; a dilation of 0 is none
};
dnnl::convolution_forward::primitive_desc forward_convolution(dnnl::algorithm, const ProductMemory&,
                                                              const ConvolutionWindow&, const dnnl::primitive_attr&);
dnnl::convolution_backward_data::primitive_desc data_gradient(dnnl::algorithm, const ProductMemory&,
                                                              const ConvolutionWindow&, const dnnl::primitive_attr&,
                                                              const dnnl::convolution_forward::primitive_desc& hint);
dnnl::convolution_backward_weights::primitive_desc weight_gradient(
    dnnl::algorithm, const ProductMemory&, const ConvolutionWindow&, const dnnl::primitive_attr&,
    const dnnl::convolution_forward::primitive_desc& hint);

dnnl::inner_product_forward::primitive_desc forward_product(const ProductMemory&, const dnnl::primitive_attr&);
dnnl::inner_product_backward_data::primitive_desc data_gradient(
    const ProductMemory&, const dnnl::primitive_attr&, const dnnl::inner_product_forward::primitive_desc& hint);
dnnl::inner_product_backward_weights::primitive_desc weight_gradient(
    const ProductMemory&, const dnnl::primitive_attr&, const dnnl::inner_product_forward::primitive_desc& hint);

dnnl::matmul::primitive_desc matrix_product(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                            const dnnl::memory::desc& y, const dnnl::primitive_attr&);

struct PoolingProblem {
  dnnl::algorithm algorithm;
  dnnl::memory::desc x, y;
  dnnl::memory::dims stride = {}, kernel = {}, before = {}, after = {};  // by axis; padding before and after the image
};
dnnl::pooling_forward::primitive_desc forward_pooling(const PoolingProblem&, const dnnl::primitive_attr&);
dnnl::pooling_backward::primitive_desc pooling_gradient(const PoolingProblem&, const dnnl::primitive_attr&,
                                                        const dnnl::pooling_forward::primitive_desc& hint);

dnnl::batch_normalization_forward::primitive_desc forward_normalization(const dnnl::memory::desc& x, float epsilon,
                                                                        dnnl::normalization_flags,
                                                                        const dnnl::primitive_attr&);
dnnl::batch_normalization_backward::primitive_desc normalization_gradient(
    const dnnl::memory::desc& x, float epsilon, dnnl::normalization_flags, const dnnl::primitive_attr&,
    const dnnl::batch_normalization_forward::primitive_desc& hint);
// Whether the gradient wants the shift, which it does not read, among its arguments (2.6), or refuses it (3.x).
extern const bool kNormalizationGradientTakesShift;

}  // namespace lockstep::kernels::onednn
