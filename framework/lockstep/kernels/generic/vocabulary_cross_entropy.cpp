#include "lockstep/kernels/generic/vocabulary_cross_entropy.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "lockstep/core/math.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::generic {
namespace {

template <class T>
double logit(const VocabularyShape& s, const VocabularyInputs<T, T>& in, std::int64_t m, std::int64_t v) {
  const T *x = in.x + m * s.features, *row = in.table + v * s.features;
  double sum = in.bias ? static_cast<double>(in.bias[v]) : 0;
  for (std::int64_t e = 0; e < s.features; ++e) sum += static_cast<double>(x[e]) * static_cast<double>(row[e]);
  return sum;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The results of the logits of one position.
struct Statistics {
  double log_sum = 0, mean = 0, of_target = 0;
  std::int64_t best = 0;  // the first of the largest
};

template <class T>
Statistics statistics_of(const VocabularyShape& s, const VocabularyInputs<T, T>& in, std::int64_t m) {
  Statistics found;
  double top = -kInfinity, sum = 0, total = 0;
  for (std::int64_t v = 0; v < s.vocabulary; ++v) {
    const double z = logit(s, in, m, v);
    if (z > top) {
      sum = sum * math::exp(top - z) + 1;  // of 0 at first: exp(-inf) is 0
      top = z;
      found.best = v;
    } else if (z > -kInfinity || z != z) {  // a forbidden word adds nothing
      sum += math::exp(z - top);
    }
    total += z;
    if (v == in.targets[m]) found.of_target = z;
  }
  found.log_sum = top + math::log(sum);
  found.mean = total / static_cast<double>(s.vocabulary);
  return found;
}

}  // namespace

template <class T>
void vocabulary_forward(const VocabularyShape& s, const VocabularyInputs<T, T>& in, const VocabularyOutputs<T>& out) {
  check_targets(s, in.targets);
  std::fill_n(out.losses, s.positions, T(0));
  std::fill_n(out.log_sums, s.positions, T(0));
  std::atomic<std::int64_t> correct = 0;
  parallel_for(s.positions, s.vocabulary * s.features, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t own = 0;
    for (std::int64_t m = begin; m < end; ++m) {
      if (!s.counts(in.targets[m])) continue;
      const Statistics z = statistics_of(s, in, m);
      out.log_sums[m] = static_cast<T>(z.log_sum);
      out.losses[m] = static_cast<T>(s.loss(z.log_sum, z.of_target, z.mean));
      own += z.best == in.targets[m] && (!in.weights || in.weights[m] != 0) ? 1 : 0;
    }
    correct += own;
  });
  *out.correct = static_cast<double>(correct.load());
  vocabulary_mean(s, in.targets, in.weights, out.losses, out.loss, out.weight_sum);
}

template <class T>
void vocabulary_backward(const VocabularyShape& s, const VocabularyInputs<T, T>& in,
                         const VocabularyGradients<T>& out) {
  check_targets(s, in.targets);
  const VocabularySlope<T> slope(s, in.targets, in.weights, out.weight_sum, out.dloss);
  const double e = s.smoothing(), spread = e / static_cast<double>(std::max<std::int64_t>(1, s.vocabulary));
  const auto dlogit = [&](std::int64_t m, std::int64_t v) {
    const double p = math::exp(logit(s, in, m, v) - static_cast<double>(out.log_sums[m]));
    return slope(m) * (p - spread - (v == in.targets[m] ? 1 - e : 0));
  };
  const auto add = [&](double factor, const T* from, T* to) {
    for (std::int64_t i = 0; i < s.features; ++i) to[i] += static_cast<T>(factor * static_cast<double>(from[i]));
  };
  parallel_for(s.positions, s.vocabulary * s.features, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t m = begin; m < end; ++m) {
      std::fill_n(out.dx + m * s.features, s.features, T(0));
      if (slope(m) == 0) continue;
      for (std::int64_t v = 0; v < s.vocabulary; ++v)
        add(dlogit(m, v), in.table + v * s.features, out.dx + m * s.features);
    }
  });
  parallel_for(s.vocabulary, s.positions * s.features, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t v = begin; v < end; ++v) {
      std::fill_n(out.dtable + v * s.features, s.features, T(0));
      double total = 0;
      for (std::int64_t m = 0; m < s.positions; ++m) {
        if (slope(m) == 0) continue;
        const double d = dlogit(m, v);
        add(d, in.x + m * s.features, out.dtable + v * s.features);
        total += d;
      }
      if (out.dbias) out.dbias[v] = static_cast<T>(total);
    }
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                               \
  template void vocabulary_forward<T>(const VocabularyShape&, const VocabularyInputs<T, T>&,  \
                                      const VocabularyOutputs<T>&);                           \
  template void vocabulary_backward<T>(const VocabularyShape&, const VocabularyInputs<T, T>&, \
                                       const VocabularyGradients<T>&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
