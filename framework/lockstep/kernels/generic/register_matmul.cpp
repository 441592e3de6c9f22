// Products of matrices and of stacks of matrices, on OpenBLAS or with portable bits.
#include "lockstep/kernels/generic/batched_gemm.h"
#include "lockstep/kernels/generic/rows.h"
#include "lockstep/ops/linear.h"

namespace lockstep::kernels::generic {
namespace {

std::optional<KernelOffer> matmul_kernel(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<MatmulOp>();
  KernelOffer offer = plain_offer(r);
  offer.portable = r.wants_portable();
  offer.build = [product = BatchedGemm(way_of(r), r.inputs[0].shape, op.transpose_a(), r.inputs[1].shape,
                                       op.transpose_b(), r.outputs[0].shape),
                 dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel(
          [product](const Arguments& a) { product.run(a.in<T>(0), a.in<T>(1), a.out<T>(0), a.scratch<T>()); },
          static_cast<std::size_t>(product.scratch()) * sizeof(T));
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> matmul_rows() { return {kernel_row<MatmulOp>("matmul", matmul_kernel)}; }

}  // namespace lockstep::kernels::generic
