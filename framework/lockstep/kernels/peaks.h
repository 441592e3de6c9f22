// What the calling rank's threads reach at most, measured: the ceilings that a profile compares kernels with. Takes
// about a quarter of a second and, meanwhile, 192 MiB. For a fair share of the memory's speed, ranks of a node call it
// at the same time. Figures are of all OpenMP threads of the process together.
#pragma once

namespace lockstep::kernels {

struct Peaks {
  double f32_flops = 0;   // per second: multiply-adds on the widest vectors in use, two operations each
  double bf16_flops = 0;  // per second: AVX512_BF16 dot products, f32 sums; 0: the processor has none
  double bytes = 0;       // per second: triad a = b + s c over arrays larger than caches, two reads and a write
};
Peaks measure_peaks();

}  // namespace lockstep::kernels
