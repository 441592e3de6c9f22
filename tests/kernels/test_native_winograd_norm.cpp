// Winograd's convolutions that normalise what they read: the bits are those of batch norm with ReLU before a
// convolution.
#include "lockstep/kernels/native/batch_norm.h"
#include "tests/kernels/winograd_support.h"

namespace lockstep::native::of_norm {
namespace {

using generic::random_values;
using kernels::native::GivenNorm;
using kernels::native::WinogradGradient;

// An image with a norm, and what batch norm and ReLU make of it. Channels of shift -100 are cut off as a whole.
struct Normed {
  explicit Normed(const ConvolutionGeometry& geometry)
      : g(geometry),
        x(in_layout(form.x_shape, form.x, random_values<float>(WinogradSizes(g).x, 1))),
        gamma(random_values<float>(g.in_channels, 2, 1)),
        beta(random_values<float>(g.in_channels, 3)),
        mean(random_values<float>(g.in_channels, 4)),
        inv_std(random_values<float>(g.in_channels, 5, 2)),
        y(blank<float>(static_cast<std::int64_t>(x.size()))) {
    if (g.in_channels > 1) beta[1] = -100;
    kernels::native::batch_norm_apply<float>(
        {.view = {.batch = g.batch, .channels = g.in_channels, .spatial = g.in_d * g.in_h * g.in_w, .block = kLanes},
         .x = x.data(),
         .gamma = gamma.data(),
         .beta = beta.data(),
         .mean = mean.data(),
         .inv_std = inv_std.data(),
         .relu = true,
         .y = y.data()});
  }
  GivenNorm norm() const {
    return {.gamma = gamma.data(), .beta = beta.data(), .mean = mean.data(), .inv_std = inv_std.data()};
  }

  ConvolutionGeometry g;
  Forms form{g};
  std::vector<float> x, gamma, beta, mean, inv_std, y;
};

struct Level {
  int tile;
  const kernels::NativeKernels& kernels;
};

std::vector<float> forward(const Normed& n, Level level, bool normalises) {
  const auto w = in_layout(n.form.w_shape, n.form.w, random_values<float>(WinogradSizes(n.g).w, 6));
  const auto bias = random_values<float>(n.g.out_channels, 7);
  auto y = blank<float>(n.form.y.storage_elements(n.form.y_shape));
  const WinogradConvolution convolution(n.g, WinogradConvolution::Direction::Forward, level.tile, level.kernels,
                                        normalises);
  Workspace workspace(convolution.workspace_bytes());
  convolution.run({.x = normalises ? n.x.data() : n.y.data(),
                   .w = w.data(),
                   .norm = normalises ? n.norm() : GivenNorm{},
                   .bias = bias.data(),
                   .y = y.data(),
                   .workspace = workspace.data()});
  return y;
}

// dw, and dbias behind it.
std::vector<float> weight_gradient(const Normed& n, Level level, bool normalises) {
  const auto dy = in_layout(n.form.y_shape, n.form.y, random_values<float>(WinogradSizes(n.g).y, 6));
  auto dw = blank<float>(n.form.w.storage_elements(n.form.w_shape));
  auto dbias = blank<float>(n.g.out_channels);
  const WinogradGradient gradient(n.g, level.tile, level.kernels, normalises);
  Workspace workspace(gradient.workspace_bytes());
  gradient.run({.x = normalises ? n.x.data() : n.y.data(),
                .dy = dy.data(),
                .norm = normalises ? n.norm() : GivenNorm{},
                .dw = dw.data(),
                .dbias = dbias.data(),
                .workspace = workspace.data()});
  dw.insert(dw.end(), dbias.begin(), dbias.end());
  return dw;
}

TEST(NativeWinogradOfNorm, HasTheBitsOfANormBeforeIt) {
  for (const ConvolutionGeometry& g : geometries()) {
    const Normed normed(g);
    for (const int tile : {2, 4}) {
      SCOPED_TRACE(testing::Message() << g.in_channels << " -> " << g.out_channels << ", " << g.in_h << " x " << g.in_w
                                      << ", F" << tile);
      for_levels([&](const kernels::NativeKernels& kernels) {
        const Level level{tile, kernels};
        EXPECT_TRUE(generic::same_bits(forward(normed, level, true), forward(normed, level, false)));
        EXPECT_TRUE(generic::same_bits(weight_gradient(normed, level, true), weight_gradient(normed, level, false)));
      });
    }
  }
}

TEST(NativeWinogradOfNorm, ThreadsChangeNoBit) {
  for (const ConvolutionGeometry& g : {geometry(7, 32, 48, 16, 16, 1, 1), geometry(13, 144, 144, 12, 11, 1, 1)}) {
    const Normed normed(g);
    const auto both = [&](int threads) {
      const generic::Threads scope(threads);
      const Level level{4, kernels::native_kernels()};
      auto made = forward(normed, level, true);
      const auto dw = weight_gradient(normed, level, true);
      made.insert(made.end(), dw.begin(), dw.end());
      return made;
    };
    const auto one = both(1);
    EXPECT_TRUE(generic::same_bits(both(2), one));
    EXPECT_TRUE(generic::same_bits(both(3), one));
  }
}

// The values that the reader of a norm needs, without y.
TEST(NativeBatchNormStatistics, AreThoseOfForward) {
  for (const std::int64_t block : {1, 8, 16}) {
    for (const std::int64_t spatial : {9, 5000}) {
      const kernels::BatchNormView view{.batch = 3, .channels = 21, .spatial = spatial, .block = block};
      const std::int64_t elements = view.batch * view.blocks() * block * spatial;
      const auto x = random_values<float>(elements, 1, 3);
      const auto run = [&](bool all) {
        auto y = blank<float>(elements), statistics = blank<float>(2 * view.channels);
        std::vector<double> sums(static_cast<std::size_t>(2 * view.channels));
        alignas(64) std::byte workspace[1 << 16];
        EXPECT_LE(kernels::native::batch_norm_workspace(view), sizeof(workspace));
        const kernels::native::BatchNormForward<float> options{.view = view,
                                                               .x = x.data(),
                                                               .eps = 1e-5,
                                                               .y = y.data(),
                                                               .mean = statistics.data(),
                                                               .inv_std = statistics.data() + view.channels,
                                                               .sums = sums.data(),
                                                               .workspace = workspace};
        all ? batch_norm_forward(options) : batch_norm_forward_statistics(options);
        return std::pair(statistics, sums);
      };
      EXPECT_EQ(run(false), run(true));
    }
  }
}

// A residual that is normalised where it is added, at every level and with any number of threads.
TEST(NativeBatchNormOfSum, HasTheBitsOfTwoPasses) {
  for (const std::int64_t block : {1, 8, 16}) {
    const kernels::BatchNormView view{.batch = 3, .channels = 21, .spatial = 5000, .block = block};
    const std::int64_t elements = view.batch * view.blocks() * block * view.spatial;
    const auto x = random_values<float>(elements, 1), r = random_values<float>(elements, 2);
    std::vector<std::vector<float>> values;  // gamma, beta, mean and inverse deviation of r, then of x
    for (std::uint64_t k = 0; k < 8; ++k)
      values.push_back(random_values<float>(view.channels, 3 + k, k % 4 == 3 ? 2 : 0));
    const GivenNorm of_r{values[0].data(), values[1].data(), values[2].data(), values[3].data()};
    const auto run = [&](const kernels::NativeKernels& kernels, bool joined) {
      auto normed = blank<float>(elements), y = normed;
      kernels::native::batch_norm_apply<float>({.view = view,
                                                .x = r.data(),
                                                .gamma = of_r.gamma,
                                                .beta = of_r.beta,
                                                .mean = of_r.mean,
                                                .inv_std = of_r.inv_std,
                                                .y = normed.data()},
                                               kernels);
      kernels::native::batch_norm_apply<float>({.view = view,
                                                .x = x.data(),
                                                .residual = joined ? r.data() : normed.data(),
                                                .of_residual = joined ? of_r : GivenNorm{},
                                                .gamma = values[4].data(),
                                                .beta = values[5].data(),
                                                .mean = values[6].data(),
                                                .inv_std = values[7].data(),
                                                .relu = true,
                                                .y = y.data()},
                                               kernels);
      return y;
    };
    const auto want = run(kernels::native_kernels(), false);
    for_levels([&](const kernels::NativeKernels& kernels) {
      for (const int threads : {1, 3}) {
        const generic::Threads scope(threads);
        EXPECT_TRUE(generic::same_bits(run(kernels, true), want)) << threads << " threads, block " << block;
      }
    });
  }
}

}  // namespace
}  // namespace lockstep::native::of_norm
