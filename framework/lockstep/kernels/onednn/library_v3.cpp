// oneDNN 3.x: primitive descriptors are made in one call, and a memory descriptor is opaque. Its strides and blocks can
// be read, but a blocked one can only be made from a format tag.
#include <dnnl_debug.h>

#include <map>
#include <mutex>
#include <string>

#include "lockstep/kernels/onednn/library.h"
#include "lockstep/kernels/onednn/primitive_kernel.h"

namespace lockstep::kernels::onednn {
namespace {

// The format tag by its name, which is what Layout::str() gives: "aBcd16b". Names such as "nChw16c" are aliases with
// the same numbers.
std::optional<dnnl::memory::format_tag> tag_named(const std::string& name) {
  static const auto* const tags = [] {
    auto* const all = new std::map<std::string, dnnl_format_tag_t>;
    for (int i = dnnl_format_tag_any + 1; i < dnnl_format_tag_last; ++i)
      all->try_emplace(dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(i)), static_cast<dnnl_format_tag_t>(i));
    return all;
  }();
  const auto found = tags->find(name);
  if (found == tags->end()) return std::nullopt;
  return static_cast<dnnl::memory::format_tag>(found->second);
}

}  // namespace

std::optional<MemoryBlocking> blocking_of(const dnnl::memory::desc& d) {
  if (d.get_format_kind() != dnnl::memory::format_kind::blocked || d.get_submemory_offset() != 0) return std::nullopt;
  for (const dnnl::memory::dim offset : d.get_padded_offsets()) {
    if (offset != 0) return std::nullopt;
  }
  MemoryBlocking result{.dims = d.get_dims(), .padded = d.get_padded_dims(), .strides = d.get_strides(), .blocks = {}};
  const dnnl::memory::dims sizes = d.get_inner_blks(), dims = d.get_inner_idxs();
  for (int i = 0; i < d.get_inner_nblks(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    result.blocks.push_back({static_cast<int>(dims[at]), sizes[at]});
  }
  return result;
}

std::optional<dnnl::memory::desc> descriptor_of(const Shape& shape, const Layout& layout,
                                                dnnl::memory::data_type data_type) {
  const auto tag = tag_named(layout.str());
  if (!tag) return std::nullopt;
  dnnl::memory::desc result(shape.dims(), data_type, *tag, true);
  if (!result) return std::nullopt;
  const auto made = blocking_of(result);
  if (!made || made->padded != layout.padded || made->strides != layout.strides || made->blocks != layout.blocks)
    return std::nullopt;
  return result;
}

dnnl::memory::data_type data_type_of(const dnnl::memory::desc& descriptor) { return descriptor.get_data_type(); }

dnnl::convolution_forward::primitive_desc forward_convolution(dnnl::algorithm algorithm, const ProductMemory& m,
                                                              const ConvolutionWindow& w,
                                                              const dnnl::primitive_attr& attributes) {
  return {engine(),   dnnl::prop_kind::forward_training,
          algorithm,  m.x,
          m.weight,   m.bias,
          m.y,        w.stride,
          w.dilation, w.padding,
          w.padding,  attributes,
          true};
}

dnnl::convolution_backward_data::primitive_desc data_gradient(dnnl::algorithm algorithm, const ProductMemory& m,
                                                              const ConvolutionWindow& w,
                                                              const dnnl::primitive_attr& attributes,
                                                              const dnnl::convolution_forward::primitive_desc& hint) {
  return {engine(), algorithm, m.x, m.weight, m.y, w.stride, w.dilation, w.padding, w.padding, hint, attributes, true};
}

dnnl::convolution_backward_weights::primitive_desc weight_gradient(
    dnnl::algorithm algorithm, const ProductMemory& m, const ConvolutionWindow& w,
    const dnnl::primitive_attr& attributes, const dnnl::convolution_forward::primitive_desc& hint) {
  return {engine(),   algorithm, m.x,       m.weight, m.bias,     m.y, w.stride,
          w.dilation, w.padding, w.padding, hint,     attributes, true};
}

dnnl::inner_product_forward::primitive_desc forward_product(const ProductMemory& m,
                                                            const dnnl::primitive_attr& attributes) {
  return {engine(), dnnl::prop_kind::forward_training, m.x, m.weight, m.bias, m.y, attributes, true};
}

dnnl::inner_product_backward_data::primitive_desc data_gradient(
    const ProductMemory& m, const dnnl::primitive_attr& attributes,
    const dnnl::inner_product_forward::primitive_desc& hint) {
  return {engine(), m.x, m.weight, m.y, hint, attributes, true};
}

dnnl::inner_product_backward_weights::primitive_desc weight_gradient(
    const ProductMemory& m, const dnnl::primitive_attr& attributes,
    const dnnl::inner_product_forward::primitive_desc& hint) {
  return {engine(), m.x, m.weight, m.bias, m.y, hint, attributes, true};
}

dnnl::matmul::primitive_desc matrix_product(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                            const dnnl::memory::desc& y, const dnnl::primitive_attr& attributes) {
  return {engine(), a, b, y, attributes, true};
}

dnnl::pooling_forward::primitive_desc forward_pooling(const PoolingProblem& p, const dnnl::primitive_attr& attributes) {
  const dnnl::memory::dims dilation(p.stride.size(), 0);
  return {engine(),    dnnl::prop_kind::forward_training,
          p.algorithm, p.x,
          p.y,         p.stride,
          p.kernel,    dilation,
          p.before,    p.after,
          attributes,  true};
}

dnnl::pooling_backward::primitive_desc pooling_gradient(const PoolingProblem& p, const dnnl::primitive_attr& attributes,
                                                        const dnnl::pooling_forward::primitive_desc& hint) {
  const dnnl::memory::dims dilation(p.stride.size(), 0);
  return {engine(), p.algorithm, p.x, p.y, p.stride, p.kernel, dilation, p.before, p.after, hint, attributes, true};
}

dnnl::batch_normalization_forward::primitive_desc forward_normalization(const dnnl::memory::desc& x, float epsilon,
                                                                        dnnl::normalization_flags flags,
                                                                        const dnnl::primitive_attr& attributes) {
  return {engine(), dnnl::prop_kind::forward_training, x, x, epsilon, flags, attributes, true};
}

dnnl::batch_normalization_backward::primitive_desc normalization_gradient(
    const dnnl::memory::desc& x, float epsilon, dnnl::normalization_flags flags, const dnnl::primitive_attr& attributes,
    const dnnl::batch_normalization_forward::primitive_desc& hint) {
  return {engine(), dnnl::prop_kind::backward, x, x, x, epsilon, flags, hint, attributes, true};
}

const bool kNormalizationGradientTakesShift = false;

}  // namespace lockstep::kernels::onednn
