#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/kernels/native/batch_norm_passes.h"

namespace lockstep::kernels::native {
namespace {

// The common parts of the two passes of backward.
template <class T>
struct BackwardPasses {
  const Cuts& cuts;
  const BatchNormBackward<T>& o;
  const BatchNormTable<T>& level;

  Partial* partials(std::int64_t b) const { return reinterpret_cast<Partial*>(o.workspace) + b * cuts.chunks; }
  NormaliseLanes lanes(std::int64_t b) const {
    return normalise_lanes(cuts, b, {o.gamma, o.beta}, [this](std::int64_t c) {
      return Statistics{o.mean[c], o.inv_std[c]};
    });
  }
  auto arguments(std::int64_t b) const {
    const std::int64_t at = cuts.offset(b);
    return typename BatchNormTable<T>::Gradient{.x = o.x + at,
                                                .dy = o.dy + at,
                                                .y = o.y ? o.y + at : nullptr,
                                                .addend = o.addend ? o.addend + at : nullptr,
                                                .dx = o.dx ? o.dx + at : nullptr,
                                                .masked = o.dresidual ? o.dresidual + at : nullptr,
                                                .relu = o.relu};
  }
  auto first(std::int64_t b) const {
    return [this, block = partials(b), args = arguments(b), l = lanes(b)](std::int64_t chunk) {
      Partial& p = *new (&block[chunk]) Partial;
      level.gradient_sums(cuts.strip(chunk), args, l, p.sums);
    };
  }
  // dbeta and dgamma / inv_std of the block's lanes are first and second.
  void publish(std::int64_t b, const Total& t) const {
    for (std::int64_t l = 0; l < cuts.lanes(b); ++l) {
      const std::int64_t c = b * cuts.view.block + l;
      if (o.dgamma) o.dgamma[c] = static_cast<float>(t.second[l] * static_cast<double>(o.inv_std[c]));
      if (o.dbeta) o.dbeta[c] = static_cast<float>(t.first[l]);
    }
  }
  // dx = gamma inv_std (g - sum g / n - xhat sum g xhat / n), of the sums of g and of g (x - mean)
  auto second(std::int64_t b, const Total& t, double count) const {
    GradientLanes factors;
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const std::int64_t lane = l % cuts.view.block, c = b * cuts.view.block + lane;
      if (lane >= cuts.lanes(b)) continue;
      const double inverse = static_cast<double>(o.inv_std[c]);
      const double scale = (o.gamma ? static_cast<double>(o.gamma[c]) : 1) * inverse;
      factors.dy[l] = static_cast<float>(scale);
      factors.x[l] = static_cast<float>(-scale * inverse * inverse * t.second[lane] / count);
      factors.constant[l] = static_cast<float>(-scale * t.first[lane] / count);
    }
    return [this, factors, args = arguments(b), l = lanes(b)](std::int64_t chunk) {
      level.gradient(cuts.strip(chunk), args, l, factors);
    };
  }
};

template <class T>
void check_residual(const BatchNormBackward<T>& o) {
  check(!o.dresidual || (o.relu && o.y), "batch_norm", "dresidual is given, expected relu and y beside it");
  check(!o.addend || o.dresidual, "batch_norm", "addend is given, expected dresidual beside it");
}

}  // namespace

template <class T>
void batch_norm_backward(const BatchNormBackward<T>& o, const NativeKernels& kernels) {
  check_residual(o);
  const Cuts cuts(o.view);
  const BackwardPasses<T> passes{cuts, o, table<T>(kernels)};
  const double count = static_cast<double>(std::max<std::int64_t>(o.view.batch * o.view.spatial, 1));
  const auto finish = [&](std::int64_t b, bool publish) {
    const Total t = total(cuts, passes.partials(b));
    if (publish) passes.publish(b, t);
    return passes.second(b, t, count);
  };
  two_passes(
      cuts, [&](std::int64_t b) { return passes.first(b); }, finish);
}

template <class T>
void batch_norm_gradient_sums(const BatchNormBackward<T>& o, double* sums, const NativeKernels& kernels) {
  check_residual(o);
  const Cuts cuts(o.view);
  const BackwardPasses<T> passes{cuts, o, table<T>(kernels)};
  first_pass(cuts, [&](std::int64_t b) { return passes.first(b); });
  for (std::int64_t b = 0; b < cuts.blocks; ++b) {
    const Total t = total(cuts, passes.partials(b));
    passes.publish(b, t);
    std::copy_n(t.first, cuts.lanes(b), sums + b * o.view.block);
    std::copy_n(t.second, cuts.lanes(b), sums + o.view.channels + b * o.view.block);
  }
}

template <class T>
void batch_norm_gradient_apply(const BatchNormBackward<T>& o, const double* sums, double count,
                               const NativeKernels& kernels) {
  check(!o.dresidual, "batch_norm", "dresidual is given, expected the masked dy in place of dy");
  const Cuts cuts(o.view);
  const BackwardPasses<T> passes{cuts, o, table<T>(kernels)};
  second_pass(cuts, [&](std::int64_t b, bool) {
    Total t;
    std::copy_n(sums + b * o.view.block, cuts.lanes(b), t.first);
    std::copy_n(sums + o.view.channels + b * o.view.block, cuts.lanes(b), t.second);
    return passes.second(b, t, count);
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                          \
  template void batch_norm_backward<T>(const BatchNormBackward<T>&, const NativeKernels&);               \
  template void batch_norm_gradient_sums<T>(const BatchNormBackward<T>&, double*, const NativeKernels&); \
  template void batch_norm_gradient_apply<T>(const BatchNormBackward<T>&, const double*, double, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
