// The parts of the table of the generic kernels, and helpers for them. These kernels support f32 and f64; for bf16 the
// plan inserts casts to f32.
#pragma once

#include <vector>

#include "lockstep/kernels/common/offers.h"
#include "lockstep/kernels/generic/elementwise.h"
#include "lockstep/kernels/generic/matrix_product.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/ops/epilogue.h"

namespace lockstep::kernels::generic {

// How the products of a request are computed. An offer on them is portable if the request wants that.
inline MatrixProduct::Way way_of(const KernelRequest& r) {
  return r.wants_portable() ? MatrixProduct::Way::Portable : MatrixProduct::Way::Blas;
}

// Applies the epilogue in place, in separate loops.
template <class T>
void finish(const Epilogue& epilogue, std::int64_t n, const T* residual, T* y) {
  if (epilogue.residual) add(n, y, residual, y);
  if (epilogue.relu) relu_forward(n, y, y);
}

std::vector<KernelRow> elementwise_rows();
std::vector<KernelRow> product_rows();
std::vector<KernelRow> matmul_rows();
std::vector<KernelRow> reduction_rows();
std::vector<KernelRow> row_norm_rows();
std::vector<KernelRow> image_rows();
std::vector<KernelRow> loss_rows();
std::vector<KernelRow> spatial_rows();
std::vector<KernelRow> synchronised_rows();
std::vector<KernelRow> shape_sum_rows();
std::vector<KernelRow> index_sum_rows();
// Kernels that only move elements, of every type.
std::vector<KernelRow> shape_rows();
std::vector<KernelRow> index_rows();
std::vector<KernelRow> recurrent_rows();
std::vector<KernelRow> fourier_rows();
std::vector<KernelRow> attention_rows();
std::vector<KernelRow> cache_rows();  // of every type
std::vector<KernelRow> table_rows();

}  // namespace lockstep::kernels::generic
