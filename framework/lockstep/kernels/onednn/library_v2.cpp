// oneDNN 2.x: operation descriptors, and memory descriptors that are plain structures.
#include "lockstep/kernels/onednn/library.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"

namespace lockstep::kernels::onednn {

using dnnl::prop_kind;

std::optional<MemoryBlocking> blocking_of(const dnnl::memory::desc& descriptor) {
  const dnnl_memory_desc_t& d = descriptor.data;
  if (d.format_kind != dnnl_blocked || d.extra.flags != dnnl_memory_extra_flag_none || d.offset0 != 0)
    return std::nullopt;
  for (int i = 0; i < d.ndims; ++i) {
    if (d.padded_offsets[i] != 0) return std::nullopt;
  }
  const dnnl_blocking_desc_t& blocking = d.format_desc.blocking;
  MemoryBlocking result{.dims = {d.dims, d.dims + d.ndims},
                        .padded = {d.padded_dims, d.padded_dims + d.ndims},
                        .strides = {blocking.strides, blocking.strides + d.ndims},
                        .blocks = {}};
  for (int i = 0; i < blocking.inner_nblks; ++i)
    result.blocks.push_back({static_cast<int>(blocking.inner_idxs[i]), blocking.inner_blks[i]});
  return result;
}

std::optional<dnnl::memory::desc> descriptor_of(const Shape& shape, const Layout& layout,
                                                dnnl::memory::data_type data_type) {
  dnnl::memory::dims dense(shape.dims().size(), 1);  // strides that oneDNN takes; those of the layout replace them
  for (std::size_t d = dense.size(); d-- > 1;) dense[d - 1] = dense[d] * shape[static_cast<int>(d)];
  dnnl::memory::desc result(shape.dims(), data_type, dense);
  dnnl_blocking_desc_t& blocking = result.data.format_desc.blocking;
  for (std::size_t d = 0; d < layout.padded.size(); ++d) {
    result.data.padded_dims[d] = layout.padded[d];
    blocking.strides[d] = layout.strides[d];
  }
  blocking.inner_nblks = static_cast<int>(layout.blocks.size());
  for (std::size_t i = 0; i < layout.blocks.size(); ++i) {
    blocking.inner_blks[i] = layout.blocks[i].size;
    blocking.inner_idxs[i] = layout.blocks[i].dim;
  }
  return result;
}

dnnl::memory::data_type data_type_of(const dnnl::memory::desc& descriptor) { return descriptor.data_type(); }

dnnl::convolution_forward::primitive_desc forward_convolution(dnnl::algorithm algorithm, const ProductMemory& m,
                                                              const ConvolutionWindow& w,
                                                              const dnnl::primitive_attr& attributes) {
  const dnnl::convolution_forward::desc d(prop_kind::forward_training, algorithm, m.x, m.weight, m.bias, m.y, w.stride,
                                          w.dilation, w.padding, w.padding);
  return {d, attributes, engine(), true};
}

dnnl::convolution_backward_data::primitive_desc data_gradient(dnnl::algorithm algorithm, const ProductMemory& m,
                                                              const ConvolutionWindow& w,
                                                              const dnnl::primitive_attr& attributes,
                                                              const dnnl::convolution_forward::primitive_desc& hint) {
  const dnnl::convolution_backward_data::desc d(algorithm, m.x, m.weight, m.y, w.stride, w.dilation, w.padding,
                                                w.padding);
  return {d, attributes, engine(), hint, true};
}

dnnl::convolution_backward_weights::primitive_desc weight_gradient(
    dnnl::algorithm algorithm, const ProductMemory& m, const ConvolutionWindow& w,
    const dnnl::primitive_attr& attributes, const dnnl::convolution_forward::primitive_desc& hint) {
  const dnnl::convolution_backward_weights::desc d(algorithm, m.x, m.weight, m.bias, m.y, w.stride, w.dilation,
                                                   w.padding, w.padding);
  return {d, attributes, engine(), hint, true};
}

dnnl::inner_product_forward::primitive_desc forward_product(const ProductMemory& m,
                                                            const dnnl::primitive_attr& attributes) {
  const dnnl::inner_product_forward::desc d(prop_kind::forward_training, m.x, m.weight, m.bias, m.y);
  return {d, attributes, engine(), true};
}

dnnl::inner_product_backward_data::primitive_desc data_gradient(
    const ProductMemory& m, const dnnl::primitive_attr& attributes,
    const dnnl::inner_product_forward::primitive_desc& hint) {
  const dnnl::inner_product_backward_data::desc d(m.x, m.weight, m.y);
  return {d, attributes, engine(), hint, true};
}

dnnl::inner_product_backward_weights::primitive_desc weight_gradient(
    const ProductMemory& m, const dnnl::primitive_attr& attributes,
    const dnnl::inner_product_forward::primitive_desc& hint) {
  const dnnl::inner_product_backward_weights::desc d(m.x, m.weight, m.bias, m.y);
  return {d, attributes, engine(), hint, true};
}

dnnl::matmul::primitive_desc matrix_product(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                            const dnnl::memory::desc& y, const dnnl::primitive_attr& attributes) {
  return {dnnl::matmul::desc(a, b, y), attributes, engine(), true};
}

dnnl::pooling_forward::primitive_desc forward_pooling(const PoolingProblem& p, const dnnl::primitive_attr& attributes) {
  const dnnl::pooling_forward::desc d(prop_kind::forward_training, p.algorithm, p.x, p.y, p.stride, p.kernel, p.before,
                                      p.after);
  return {d, attributes, engine(), true};
}

dnnl::pooling_backward::primitive_desc pooling_gradient(const PoolingProblem& p, const dnnl::primitive_attr& attributes,
                                                        const dnnl::pooling_forward::primitive_desc& hint) {
  const dnnl::pooling_backward::desc d(p.algorithm, p.x, p.y, p.stride, p.kernel, p.before, p.after);
  return {d, attributes, engine(), hint, true};
}

dnnl::batch_normalization_forward::primitive_desc forward_normalization(const dnnl::memory::desc& x, float epsilon,
                                                                        dnnl::normalization_flags flags,
                                                                        const dnnl::primitive_attr& attributes) {
  const dnnl::batch_normalization_forward::desc d(prop_kind::forward_training, x, epsilon, flags);
  return {d, attributes, engine(), true};
}

dnnl::batch_normalization_backward::primitive_desc normalization_gradient(
    const dnnl::memory::desc& x, float epsilon, dnnl::normalization_flags flags, const dnnl::primitive_attr& attributes,
    const dnnl::batch_normalization_forward::primitive_desc& hint) {
  const dnnl::batch_normalization_backward::desc d(prop_kind::backward, x, x, epsilon, flags);
  return {d, attributes, engine(), hint, true};
}

const bool kNormalizationGradientTakesShift = true;

}  // namespace lockstep::kernels::onednn
