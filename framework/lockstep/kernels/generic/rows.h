// The parts of the generic kernels' table, and what they share. They know f32 and f64; bf16 goes through f32, which the
// plan sees to.
#pragma once

#include <vector>

#include "lockstep/kernels/common/offers.h"
#include "lockstep/kernels/generic/elementwise.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/ops/epilogue.h"

namespace lockstep::kernels::generic {

// The epilogue in place, in loops of its own.
template <class T>
void finish(const Epilogue& epilogue, std::int64_t n, const T* residual, T* y) {
  if (epilogue.residual) add(n, y, residual, y);
  if (epilogue.relu) relu_forward(n, y, y);
}

std::vector<KernelRow> elementwise_rows();
std::vector<KernelRow> product_rows();
std::vector<KernelRow> image_rows();
std::vector<KernelRow> loss_rows();
std::vector<KernelRow> synchronised_rows();

}  // namespace lockstep::kernels::generic
