// Fourier transforms and products of spectra.
#include "lockstep/kernels/generic/fourier.h"
#include "lockstep/kernels/generic/rows.h"

namespace lockstep::kernels::generic {
namespace {

std::optional<KernelOffer> fourier_kernel(const KernelRequest& r, std::span<const Layout>) {
  const FourierOptions& options = r.as<FourierOp>().options();
  KernelOffer offer = plain_offer(r);
  const Shape& item = options.kind == FourierOptions::Kind::ToHalf ? options.sizes : options.kept;
  const std::int64_t per_item = item.elements() * (options.kind == FourierOptions::Kind::ToHalf ? 1 : 2);
  offer.build = [options, batch = r.inputs[0].shape.elements() / per_item, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      auto transform = std::make_shared<const FourierTransform<T>>(options, batch);
      const std::size_t workspace = transform->workspace_bytes();
      return make_kernel([transform](const Arguments& a) { transform->run(a.in<T>(0), a.out<T>(0), a.scratch<T>()); },
                         workspace);
    });
  };
  return offer;
}

std::optional<KernelOffer> spectral_product_kernel(const KernelRequest& r, std::span<const Layout>) {
  const SpectralProductOptions options = r.as<SpectralProductOp>().options();
  KernelOffer offer = plain_offer(r);
  const Shape &first = r.inputs[0].shape, &result = r.outputs[0].shape;
  const SpectralShape shape{.rows = result[0],
                            .columns = result[1],
                            .terms = first[options.result == SpectralProductOptions::Result::Weights ? 0 : 1],
                            .modes = result.tail().tail().elements() / 2};
  offer.build = [options, shape, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel([options, shape](const Arguments& a) {
        spectral_product(options, shape, a.in<T>(0), a.in<T>(1), a.out<T>(0));
      });
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> fourier_rows() {
  return {
      kernel_row<FourierOp>("fourier", fourier_kernel),
      kernel_row<SpectralProductOp>("spectral_product", spectral_product_kernel),
  };
}

}  // namespace lockstep::kernels::generic
