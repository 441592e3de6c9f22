// Measures the peak rates of the calling rank, with which a profile compares kernels. It takes about a quarter of a
// second and 192 MiB of memory. The ranks of a node call it at the same time, so that each measures its share of the
// memory bandwidth. Figures are for all OpenMP threads of the process together.
#pragma once

namespace lockstep::kernels {

struct Peaks {
  double f32_flops = 0;   // per second: multiply-adds on the widest vectors in use, two operations each
  double bf16_flops = 0;  // per second: AVX512_BF16 dot products, f32 sums; 0: the processor has none
  double bytes = 0;       // per second: triad a = b + s c over arrays larger than caches, two reads and a write
};
Peaks measure_peaks();

}  // namespace lockstep::kernels
