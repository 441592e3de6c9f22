// Errors of our Winograd convolutions, of oneDNN's, and of direct convolutions, all against f64, for layers of real
// networks. Prints the table of docs/performance.md and asserts the bounds stated there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "lockstep/core/format.h"
#include "lockstep/core/random.h"
#include "lockstep/ops/convolution.h"
#include "tests/kernels/sweep.h"

namespace lockstep::sweep {
namespace {

// In units of the exact result's root mean square.
struct Error {
  double largest = 0, rms = 0;
};

Error error_of(const Tensor& got, const Tensor& want) {
  double largest = 0, squares = 0, scale = 0;
  for (std::size_t i = 0; i < want.data<double>().size(); ++i) {
    const double value = want.data<double>()[i], difference = got.data<double>()[i] - value;
    largest = std::max(largest, std::abs(difference));
    squares += difference * difference;
    scale += value * value;
  }
  const double unit = std::sqrt(scale / static_cast<double>(want.elements()));
  return {largest / unit, std::sqrt(squares / scale)};
}

Tensor normal_values(const Shape& shape, double deviation, std::uint64_t key) {
  Tensor t(shape, DType::F32);
  RandomStream random(17, key);
  for (float& v : t.data<float>()) v = static_cast<float>(deviation * random.normal());
  return t.to(DType::F64);
}

struct Errors {
  std::optional<Error> direct, onednn, tiles_of_2, tiles_of_4;
};

Errors measure(const Op& op, const std::vector<Tensor>& inputs) {
  const auto request = [&](DType dtype) {
    kernels::KernelRequest r{.op = &op, .inputs = {}, .outputs = {}};
    for (const Tensor& t : inputs) r.inputs.push_back({t.shape(), dtype});
    r.outputs = op.infer("test", r.inputs);
    return r;
  };
  const kernels::KernelRequest exact = request(DType::F64);
  kernels::KernelRequest single = request(DType::F32);
  const std::vector<Layout> plain(inputs.size());
  const Tensor want = std::move(run_offer(exact, kernels::kernel_registry().offer(exact, plain), inputs).outputs[0]);
  Errors errors;
  const auto named = [](const kernels::KernelOffer& offer, const char* name) {
    return offer.implementation.find(name) != std::string::npos;
  };
  using ConvMath = kernels::KernelOptions::ConvMath;
  for (const ConvMath math : {ConvMath::Fast, ConvMath::Accurate}) {
    single.options.conv_math = math;
    for (const kernels::KernelOffer& offer : kernels::kernel_registry().offers(single, plain)) {
      std::optional<Error>* const error = named(offer, "winograd4")   ? &errors.tiles_of_4
                                          : named(offer, "winograd2") ? &errors.tiles_of_2
                                          : named(offer, "wino")      ? &errors.onednn
                                          : named(offer, "jit")       ? &errors.direct
                                                                      : nullptr;
      if (error != nullptr && !*error) *error = error_of(run_offer(single, offer, inputs).outputs[0], want);
    }
  }
  return errors;
}

struct Layer {
  std::int64_t channels, side, axes = 2;  // of equal length each

  std::string text() const {
    const std::string size = formatted("{}", side);
    std::string sizes = size;
    for (std::int64_t axis = 1; axis < axes; ++axis) sizes += " x " + size;
    return formatted("{} -> {}, {}", channels, channels, sizes);
  }
  Shape filled(std::int64_t outer, std::int64_t length) const {
    std::vector<std::int64_t> sizes{outer, channels};
    sizes.insert(sizes.end(), static_cast<std::size_t>(axes), length);
    return Shape(sizes);
  }
  std::int64_t taps() const { return axes == 3 ? 27 : 9; }
};

std::string text(const std::optional<Error>& e) {
  return e ? formatted("{:.1e} / {:.1e}", e->largest, e->rms) : std::string("-");
}

void print_row(const Layer& layer, const char* direction, const Errors& e) {
  std::printf("| %s | %s | %s | %s | %s | %s |\n", layer.text().c_str(), direction, text(e.direct).c_str(),
              text(e.tiles_of_2).c_str(), text(e.tiles_of_4).c_str(), text(e.onednn).c_str());
}

// A batch of 8, of volumes 2, with normal inputs, gradients of deviation 1, and weights as He et al. (2015) start them.
TEST(WinogradError, StaysWithinTheDocumentedBounds) {
  constexpr double kLargest = 2e-5, kRms = 2e-6;
  std::printf(
      "| layer | direction | direct, largest / rms | F(2x2) | F(4x4) | oneDNN's F(4x4) |\n| --- | --- | --- | --- | "
      "--- "
      "| --- |\n");
  for (const Layer& layer : {Layer{32, 16}, {64, 32}, {128, 16}, {256, 14}, {512, 4}, {16, 16, 3}, {64, 8, 3}}) {
    const ConvolutionOptions o{.axes =
                                   std::vector(static_cast<std::size_t>(layer.axes), ConvolutionAxis{.padding = 1})};
    const Shape x = layer.filled(layer.axes == 3 ? 2 : 8, layer.side), w = layer.filled(layer.channels, 3);
    const Tensor image = normal_values(x, 1, 1), gradient = normal_values(x, 1, 3);
    const Tensor weight = normal_values(w, std::sqrt(2.0 / static_cast<double>(layer.taps() * layer.channels)), 2);
    const std::pair<const char*, Errors> directions[] = {
        {"forward", measure(ConvolutionOp(o), list(image.clone(), weight.clone()))},
        {"backward data", measure(ConvolutionBackwardDataOp(o, x), list(gradient.clone(), weight.clone()))},
        {"backward weights",
         measure(ConvolutionBackwardWeightsOp(o, w, false), list(image.clone(), gradient.clone()))}};
    for (const auto& [direction, errors] : directions) {
      if (!errors.direct && !errors.tiles_of_4) GTEST_SKIP() << "no f32 kernels of either kind on this processor";
      print_row(layer, direction, errors);
      for (const auto* e : {&errors.direct, &errors.tiles_of_2, &errors.tiles_of_4, &errors.onednn}) {
        if (!*e) continue;
        EXPECT_LT((*e)->largest, kLargest) << layer.text() << ' ' << direction;
        EXPECT_LT((*e)->rms, kRms) << layer.text() << ' ' << direction;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::sweep
