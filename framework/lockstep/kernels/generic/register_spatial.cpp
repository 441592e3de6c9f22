// Enlarging, shrinking and padding of images.
#include <type_traits>

#include "lockstep/core/bfloat16.h"
#include "lockstep/kernels/generic/resample.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/ops/resample.h"

namespace lockstep::kernels::generic {
namespace {

template <class T>
std::unique_ptr<Kernel> resampler(const std::vector<AxisMap>& maps, std::int64_t planes, std::int64_t block) {
  using Sum = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;
  const auto run = std::make_shared<const Resampler<T, Sum>>(maps, planes, block);
  return make_kernel([run](const Arguments& a) { run->run(a.in<T>(0), a.out<T>(0)); });
}

std::optional<KernelOffer> resample(const KernelRequest& r, std::span<const Layout> offered) {
  KernelOffer offer = plain_offer(r);
  const Shape &x = r.inputs[0].shape, &y = r.outputs[0].shape;
  const std::int64_t block = known_block(x, offered[0]);
  offer.inputs[0] = Layout::channels_blocked(x, block);
  offer.outputs[0] = Layout::channels_blocked(y, block);
  const std::int64_t planes = x[0] * ((x[1] + block - 1) / block);
  offer.build = [maps = r.as<ResampleOp>().maps(), planes, block, dtype = r.dtype()] {
    if (dtype == DType::BF16) return resampler<BFloat16>(maps, planes, block);
    return build_typed(dtype, [&](auto tag) { return resampler<decltype(tag)>(maps, planes, block); });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> spatial_rows() { return {kernel_row<ResampleOp>("resample", resample)}; }

}  // namespace lockstep::kernels::generic
