#include "lockstep/kernels/choice.h"

#include <algorithm>
#include <chrono>

#include "lockstep/core/random.h"
#include "lockstep/core/tensor.h"

namespace lockstep::kernels {
namespace {

constexpr double kMargin = 0.95;           // fraction of the first offer's time; a shorter time is clearly faster
constexpr double kSecondsPerOffer = 0.02;  // but at least kRuns runs
constexpr int kRuns = 5;
constexpr double kHopeless = 4;  // times the least so far: an offer whose first run takes longer is not run again
constexpr double kLargeSeconds = 2e-3;  // of the first offer: plain loops would take minutes for work of this size

// Small random numbers for floating types, zeros for the rest (indices, targets).
AlignedBuffer filled(const Shape& shape, DType dtype, const Layout& layout) {
  const std::int64_t n = layout.storage_elements(shape);
  AlignedBuffer memory = allocate_aligned(static_cast<std::size_t>(n) * size_of(dtype));
  RandomStream random(1, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<float>(random.normal());
    if (dtype == DType::F32) reinterpret_cast<float*>(memory.get())[i] = value;
    if (dtype == DType::BF16) reinterpret_cast<BFloat16*>(memory.get())[i] = BFloat16(value);
    if (dtype == DType::F64) reinterpret_cast<double*>(memory.get())[i] = static_cast<double>(value);
  }
  return memory;
}

// Runs the offer, once if that takes far longer than `known`, the least time of the offers before it.
double least_seconds(const KernelRequest& request, const KernelOffer& offer, double known) {
  std::vector<AlignedBuffer> memory;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const DType dtype = offer.input_dtypes.empty() ? request.inputs[i].dtype : offer.input_dtypes[i];
    inputs.push_back(memory.emplace_back(filled(request.inputs[i].shape, dtype, offer.inputs[i])).get());
  }
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const Type& type = request.outputs[i];
    outputs.push_back(memory.emplace_back(filled(type.shape, type.dtype, offer.outputs[i])).get());
  }
  const auto kernel = offer.build();
  const AlignedBuffer workspace = allocate_aligned(kernel->workspace_bytes());
  const Arguments arguments{inputs.data(), outputs.data(), workspace.get()};
  const auto timed_run = [&] {
    const auto start = std::chrono::steady_clock::now();
    kernel->run(arguments);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double first = timed_run();  // warms up: touches memory, generates code
  if (first > kHopeless * known + kSecondsPerOffer) return first;
  double least = 1e300, total = 0;
  for (int run = 0; run < kRuns || total < kSecondsPerOffer; ++run) {
    const double seconds = timed_run();
    least = std::min(least, seconds);
    total += seconds;
  }
  return least;
}

}  // namespace

std::string choice_key(const KernelRequest& request) {
  std::string key(request.op->name());
  key.append(" ").append(request.op->attributes());
  for (const Type& type : request.inputs) key.append(" ").append(type.str());
  key.append(" ->");
  for (const Type& type : request.outputs) key.append(" ").append(type.str());
  if (request.options.conv_math != KernelOptions::ConvMath::Fast)
    key.append(" ").append(name_of(request.options.conv_math));
  if (request.wants_portable()) key.append(" portable");
  if (!request.options.prefer.empty()) key.append(" prefer ").append(request.options.prefer);
  return key;
}

bool is_measured(const KernelRequest& request) {
  const std::string_view op = request.op->name();
  return op != "reorder" && !op.starts_with("batch_norm2d");
}

std::size_t measure_fastest(const KernelRequest& request, std::span<const KernelOffer> offers) {
  std::size_t best = 0;
  const double first = least_seconds(request, offers[0], 1e300);
  double least = first * kMargin;
  for (std::size_t i = 1; i < offers.size(); ++i) {
    if (offers[i].implementation == "generic" && first > kLargeSeconds) continue;
    const double seconds = least_seconds(request, offers[i], least);
    if (seconds < least) {
      least = seconds;
      best = i;
    }
  }
  return best;
}

}  // namespace lockstep::kernels
