#include "lockstep/kernels/onednn/convolution_algorithms.h"

#include <algorithm>

namespace lockstep::kernels::onednn {
namespace {

bool winograd_applies(const ConvolutionShape& s, DType dtype) {
  const ConvolutionOptions& o = s.options;
  const auto step_by_step = [](const ConvolutionAxis& a) { return a.stride == 1 && a.dilation == 1; };
  return dtype == DType::F32 && o.groups == 1 && o.axes.size() == 2 && s.weight[2] == 3 && s.weight[3] == 3 &&
         std::ranges::all_of(o.axes, step_by_step);
}

// oneDNN 2.6 computes F(4x4, 3x3): 36 products for 16 outputs instead of 144, after transforms of every 4x4 tile of the
// output and of the weights. GFLOP/s of the direct form on one Zen 4 core, direct | Winograd, for forward, backward
// data and backward weights; "tiles" is those of the whole batch:
//   3 -> 16, 32^2                  196  43 198 |  30   -   -   channels are padded to 16
//   16 -> 16, 32^2, 4096 tiles     197 230 225 | 147 154 171   too few products for their transforms
//   16 -> 32, 32^2, 8192 tiles     204 202 203 | 139 179 164
//   24 -> 24, 32^2, 4096 tiles     117 122 110 | 171 154  97
//   32 -> 32, 16^2, 1024 tiles     245 244 238 | 349 353 283
//   64 -> 64, 32^2, 4096 tiles     236 223 212 | 433 445 280
//   64 -> 64, 4^2, 64 tiles        252 358 220 | 393 380 318
//   128 -> 128, 16^2, 1024 tiles   239 241 236 | 435 443 393
//   256 -> 256, 14^2, 128 tiles    230 238 236 | 355 347 382
//   512 -> 512, 4^2, 128 tiles     245 305 205 | 602 603 575
//   512 -> 512, 4^2, 32 tiles      249 298 210 | 234 226 343
//   512 -> 512, 4^2, 64 tiles      245 297 203 | 362 367 461
//   512 -> 512, 7^2, 32 tiles      236 239 212 | 191 195 252   the weights' transforms outweigh the rest, and the
//                                                              gradient's 120 MiB of scratch make a model's peak
//   256 -> 256, 8^2, 4 tiles       230 242 220 |  83  79 106
bool winograd_wins(const ConvolutionShape& s, Direction direction) {
  if (std::min(s.weight[0], s.weight[1]) <= 16) return false;
  // Tiles at the edge of an image count in part: 7^2 fills its four by three quarters.
  if (direction == Direction::BackwardWeights) return s.y[0] * s.y[2] * s.y[3] >= 32 * 16;
  return s.y[0] * ((s.y[2] + 3) / 4) * ((s.y[3] + 3) / 4) >= 64;
}

}  // namespace

std::vector<dnnl::algorithm> algorithms(const ConvolutionShape& shape, Direction direction, DType dtype,
                                        KernelOptions::ConvMath math) {
  constexpr auto kDirect = dnnl::algorithm::convolution_direct, kWinograd = dnnl::algorithm::convolution_winograd;
  if (math != KernelOptions::ConvMath::Fast || !winograd_applies(shape, dtype)) return {kDirect};
  if (winograd_wins(shape, direction)) return {kWinograd, kDirect};
  return {kDirect, kWinograd};
}

}  // namespace lockstep::kernels::onednn
