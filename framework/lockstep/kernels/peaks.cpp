#include "lockstep/kernels/peaks.h"

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "lockstep/core/tensor.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels {
namespace {

constexpr std::int64_t kRounds = 1 << 20;          // 5 to 30 ms
constexpr std::int64_t kTriadElements = 16 << 20;  // 64 MiB each
constexpr int kTrials = 8;  // the best trial counts, as other work on the machine only lowers the rate

using MultiplyAdd = std::int64_t (*)(std::int64_t rounds, float* out);

double arithmetic_peak(MultiplyAdd multiply_add) {
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::int64_t operations = 0;
    const double start = omp_get_wtime();
#pragma omp parallel reduction(+ : operations)
    {
      float out[native::kLanes];
      operations += multiply_add(kRounds, out);
    }
    best = std::max(best, static_cast<double>(operations) / (omp_get_wtime() - start));
  }
  return best;
}

double memory_peak() {
  const auto make = [] { return allocate_aligned(static_cast<std::size_t>(kTriadElements) * sizeof(float)); };
  const AlignedBuffer memory[] = {make(), make(), make()};
  float* const a = reinterpret_cast<float*>(memory[0].get());
  float* const b = reinterpret_cast<float*>(memory[1].get());
  float* const c = reinterpret_cast<float*>(memory[2].get());
  // The threads that read the memory touch it first, so that its pages lie near their cores.
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < kTriadElements; ++i) a[i] = b[i] = c[i] = 1;
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const float factor = static_cast<float>(trial);
    const double start = omp_get_wtime();
#pragma omp parallel for simd schedule(static)
    for (std::int64_t i = 0; i < kTriadElements; ++i) a[i] = b[i] + factor * c[i];
    best = std::max(best, 3.0 * sizeof(float) * static_cast<double>(kTriadElements) / (omp_get_wtime() - start));
  }
  return best;
}

}  // namespace

Peaks measure_peaks() {
  const native::PeakTable& peak = native_kernels().peak;
  return {.f32_flops = arithmetic_peak(peak.f32), .bf16_flops = arithmetic_peak(peak.bf16), .bytes = memory_peak()};
}

}  // namespace lockstep::kernels
