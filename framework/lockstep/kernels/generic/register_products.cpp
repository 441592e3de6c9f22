// Convolution, linear layers and products of pairs; products on OpenBLAS, or with portable bits.
#include "lockstep/kernels/generic/batch_norm.h"
#include "lockstep/kernels/generic/convolution.h"
#include "lockstep/kernels/generic/elementwise.h"
#include "lockstep/kernels/generic/pair_products.h"
#include "lockstep/kernels/generic/reduce.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pair_products.h"

namespace lockstep::kernels::generic {
namespace {

// The three directions differ in their scratch memory and in the function that they call.
template <class Scratch, class Run>
KernelOffer convolution(const KernelRequest& r, const ConvolutionGeometry& g, Scratch scratch, Run run) {
  KernelOffer offer = plain_offer(r);
  offer.portable = r.wants_portable();
  offer.build = [g, dtype = r.dtype(), way = way_of(r), scratch, run] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([g, run, way](const Arguments& a) { run(g, a, way, T{}); },
                         static_cast<std::size_t>(scratch(g, way)) * sizeof(T));
    });
  };
  return offer;
}

std::optional<KernelOffer> forward(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<ConvolutionOp>();
  const bool bias = op.has_bias(r.inputs.size());
  const Epilogue epilogue = op.epilogue();
  return convolution(
      r, convolution_geometry(op.options(), r.inputs[0].shape, r.inputs[1].shape), convolution_forward_scratch,
      [=, n = r.outputs[0].shape.elements()](const ConvolutionGeometry& g, const Arguments& a, MatrixProduct::Way way,
                                             auto tag) {
        using T = decltype(tag);
        T* y = a.out<T>(0);
        convolution_forward(g, a.in<T>(0), a.in<T>(1), bias ? a.in<T>(2) : nullptr, y, a.scratch<T>(), way);
        if (epilogue.residual) add(n, y, a.in<T>(bias ? 3 : 2), y);
        if (epilogue.relu) relu_forward(n, y, y);
      });
}

std::optional<KernelOffer> backward_data(const KernelRequest& r, std::span<const Layout>) {
  return convolution(
      r, convolution_geometry(r.as<ConvolutionBackwardDataOp>().options(), r.outputs[0].shape, r.inputs[1].shape),
      convolution_backward_data_scratch,
      [](const ConvolutionGeometry& g, const Arguments& a, MatrixProduct::Way way, auto tag) {
        using T = decltype(tag);
        convolution_backward_data(g, a.in<T>(0), a.in<T>(1), a.out<T>(0), a.scratch<T>(), way);
      });
}

std::optional<KernelOffer> backward_weights(const KernelRequest& r, std::span<const Layout>) {
  const Shape& dy = r.inputs[1].shape;
  const BatchNormView channels{.batch = dy[0], .channels = dy[1], .spatial = dy.tail().tail().elements()};
  return convolution(
      r, convolution_geometry(r.as<ConvolutionBackwardWeightsOp>().options(), r.inputs[0].shape, r.outputs[0].shape),
      convolution_backward_weights_scratch,
      [channels, bias = r.outputs.size() > 1](const ConvolutionGeometry& g, const Arguments& a, MatrixProduct::Way way,
                                              auto tag) {
        using T = decltype(tag);
        convolution_backward_weights(g, a.in<T>(0), a.in<T>(1), a.out<T>(0), a.scratch<T>(), way);
        if (bias) channel_sum(channels, a.in<T>(1), a.out<T>(1));
      });
}

// An offer of the product of `sizes`, which run(product, a, tag) computes with a.scratch.
template <class Run>
KernelOffer product_offer(const KernelRequest& r, const MatrixProduct::Sizes& sizes, const Run& run) {
  KernelOffer offer = plain_offer(r);
  offer.portable = r.wants_portable();
  offer.build = [product = MatrixProduct(way_of(r), sizes), dtype = r.dtype(), run] {
    return build_typed(dtype, [&](auto tag) {
      return make_kernel([product, run, tag](const Arguments& a) { run(product, a, tag); },
                         static_cast<std::size_t>(product.scratch()) * sizeof(tag));
    });
  };
  return offer;
}

std::optional<KernelOffer> linear_kernel(const KernelRequest& r, std::span<const Layout>) {
  const std::int64_t m = r.outputs[0].shape[0], n = r.outputs[0].shape[1], k = r.inputs[0].shape[1];
  return product_offer(r, {.transpose_a = false, .transpose_b = true, .m = m, .n = n, .k = k},
                       [m, n, k, relu = r.as<LinearOp>().relu(), bias = r.inputs.size() > 2](
                           const MatrixProduct& product, const Arguments& a, auto tag) {
                         using T = decltype(tag);
                         product.run<T>({a.in<T>(0), k}, {a.in<T>(1), k}, false, {a.out<T>(0), n}, a.scratch<T>());
                         if (bias) add_channel_bias({.batch = m, .channels = n, .spatial = 1}, a.out<T>(0), a.in<T>(2));
                         if (relu) relu_forward(m * n, a.out<T>(0), a.out<T>(0));
                       });
}

std::optional<KernelOffer> linear_backward_data(const KernelRequest& r, std::span<const Layout>) {
  const std::int64_t m = r.outputs[0].shape[0], n = r.outputs[0].shape[1], k = r.inputs[0].shape[1];
  return product_offer(r, {.transpose_a = false, .transpose_b = false, .m = m, .n = n, .k = k},
                       [n, k](const MatrixProduct& product, const Arguments& a, auto tag) {
                         using T = decltype(tag);
                         product.run<T>({a.in<T>(0), k}, {a.in<T>(1), n}, false, {a.out<T>(0), n}, a.scratch<T>());
                       });
}

std::optional<KernelOffer> linear_backward_weights(const KernelRequest& r, std::span<const Layout>) {
  const std::int64_t m = r.outputs[0].shape[0], n = r.outputs[0].shape[1], k = r.inputs[0].shape[0];
  return product_offer(
      r, {.transpose_a = true, .transpose_b = false, .m = m, .n = n, .k = k},
      [m, n, k, bias = r.outputs.size() > 1](const MatrixProduct& product, const Arguments& a, auto tag) {
        using T = decltype(tag);
        product.run<T>({a.in<T>(1), m}, {a.in<T>(0), n}, false, {a.out<T>(0), n}, a.scratch<T>());
        if (bias) column_sum(k, m, a.in<T>(1), a.out<T>(1));
      });
}

// `x` is the input that has the vectors.
template <class Run>
KernelOffer pairs_offer(const KernelRequest& r, std::size_t x, const Run& run) {
  KernelOffer offer = plain_offer(r);
  offer.portable = true;
  offer.build = [g = PairGeometry(r.inputs[x].shape), dtype = r.dtype(), run] {
    return build_typed(dtype,
                       [&](auto tag) { return make_kernel([g, run, tag](const Arguments& a) { run(g, a, tag); }); });
  };
  return offer;
}

std::optional<KernelOffer> pairs_kernel(const KernelRequest& r, std::span<const Layout>) {
  return pairs_offer(r, 0, [](const PairGeometry& g, const Arguments& a, auto tag) {
    using T = decltype(tag);
    pair_products(g, a.in<T>(0), a.out<T>(0));
  });
}

std::optional<KernelOffer> pairs_gradient_kernel(const KernelRequest& r, std::span<const Layout>) {
  return pairs_offer(r, 1, [](const PairGeometry& g, const Arguments& a, auto tag) {
    using T = decltype(tag);
    pair_products_gradient(g, a.in<T>(0), a.in<T>(1), a.out<T>(0));
  });
}

}  // namespace

std::vector<KernelRow> product_rows() {
  return {
      kernel_row<ConvolutionOp>("conv1d", forward),
      kernel_row<ConvolutionBackwardDataOp>("conv1d_backward_data", backward_data),
      kernel_row<ConvolutionBackwardWeightsOp>("conv1d_backward_weights", backward_weights),
      kernel_row<ConvolutionOp>("conv2d", forward),
      kernel_row<ConvolutionBackwardDataOp>("conv2d_backward_data", backward_data),
      kernel_row<ConvolutionBackwardWeightsOp>("conv2d_backward_weights", backward_weights),
      kernel_row<ConvolutionOp>("conv3d", forward),
      kernel_row<ConvolutionBackwardDataOp>("conv3d_backward_data", backward_data),
      kernel_row<ConvolutionBackwardWeightsOp>("conv3d_backward_weights", backward_weights),
      kernel_row<LinearOp>("linear", linear_kernel),
      kernel_row<LinearBackwardDataOp>("linear_backward_data", linear_backward_data),
      kernel_row<LinearBackwardWeightsOp>("linear_backward_weights", linear_backward_weights),
      kernel_row<PairProductsOp>("pair_products", pairs_kernel),
      kernel_row<PairProductsGradientOp>("pair_products_gradient", pairs_gradient_kernel),
  };
}

}  // namespace lockstep::kernels::generic
