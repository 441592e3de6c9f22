// The table of the generic kernels.
#include <algorithm>
#include <array>
#include <iterator>

#include "lockstep/kernels/generic/rows.h"

namespace lockstep::kernels {
namespace {

// Kernels that only move values take bf16 as it is; the other kernels leave bf16 to the plan, which converts to f32.
constexpr std::array<std::string_view, 10> kTakeBf16{"reorder",
                                                     "cast",
                                                     "resample",
                                                     "max_pool1d",
                                                     "max_pool1d_gradient",
                                                     "max_pool2d",
                                                     "max_pool2d_gradient",
                                                     "max_pool3d",
                                                     "max_pool3d_gradient",
                                                     "rotary"};

KernelFactory without_bf16(KernelFactory factory) {
  return [factory = std::move(factory)](const KernelRequest& request, std::span<const Layout> offered) {
    const bool refuses = request.has_bf16() && std::ranges::find(kTakeBf16, request.op->name()) == kTakeBf16.end();
    return refuses ? std::vector<KernelOffer>() : factory(request, offered);
  };
}

// Plain C++ without contraction, whose sums follow shapes, and functions of core/math.h: offers promise portable bits.
KernelFactory portable(KernelFactory factory) {
  return [factory = std::move(factory)](const KernelRequest& request, std::span<const Layout> offered) {
    std::vector<KernelOffer> offers = factory(request, offered);
    for (KernelOffer& offer : offers) offer.portable = true;
    return offers;
  };
}
KernelFactory portable_without_bf16(KernelFactory factory) { return portable(without_bf16(std::move(factory))); }

}  // namespace

void register_generic_kernels(KernelRegistry& registry) {
  using namespace generic;
  for (const auto part :
       {elementwise_rows, reduction_rows, row_norm_rows, image_rows, spatial_rows, loss_rows, synchronised_rows,
        shape_sum_rows, index_sum_rows, recurrent_rows, fourier_rows, attention_rows, table_rows})
    registry.add("generic", part(), portable_without_bf16);
  for (const auto part : {product_rows, matmul_rows}) registry.add("generic", part(), without_bf16);
  for (const auto part : {shape_rows, index_rows, cache_rows}) registry.add("generic", part(), portable);
}

}  // namespace lockstep::kernels
