#include "lockstep/kernels/generic/attention.h"

#include <cmath>
#include <limits>

#include "lockstep/core/math.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::generic {
namespace {

template <class T>
double dot(std::int64_t n, const T* a, const T* b) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

template <class T>
void add_scaled(std::int64_t n, double factor, const T* x, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += static_cast<T>(factor * static_cast<double>(x[i]));
}

// One query of one head.
template <class T>
class Query {
 public:
  Query(const AttentionGeometry& g, const AttentionRun& run, const AttentionProjections<const T>& x, std::int64_t n,
        std::int64_t h, std::int64_t t)
      : g_(g),
        position_(run.offset(n) + t),
        keys_(run.visible(n, position_)),
        segments_(run.segments(n)),
        slope_(g.slopes.empty() ? 0 : g.slopes[static_cast<std::size_t>(h)]),
        q_(x.q + (n * g.queries + t) * g.query_stride() + h * g.width),
        k_(x.k + key_offset(n, h)) {}

  std::int64_t key_offset(std::int64_t n, std::int64_t h) const {
    return n * g_.keys * g_.key_stride() + h / g_.group() * g_.width;
  }
  const T* q() const { return q_; }
  const T* k(std::int64_t s) const { return k_ + s * g_.key_stride(); }
  double score(std::int64_t s) const {
    const double distance = static_cast<double>(position_ > s ? position_ - s : s - position_);
    return g_.options.scale * dot(g_.width, q_, k(s)) - slope_ * distance;
  }
  // Calls visit(s) for each key that the query sees, in order.
  template <class Visit>
  void for_keys(const Visit& visit) const {
    for (std::int64_t s = keys_.begin; s < keys_.end; ++s) {
      if (segments_ == nullptr || segments_[s] == segments_[position_]) visit(s);
    }
  }

 private:
  const AttentionGeometry& g_;
  std::int64_t position_;
  Range keys_;
  const std::int32_t* segments_;
  double slope_;
  const T *q_, *k_;
};

// The logarithm of the sum of the exponentials of a query's scores, -infinity for none.
template <class T>
double log_sum(const Query<T>& query) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  query.for_keys([&](std::int64_t s) {
    const double score = query.score(s);
    if (score > top) {
      sum = sum * math::exp(top - score) + 1;
      top = score;
    } else {
      sum += math::exp(score - top);
    }
  });
  return sum == 0 ? top : top + math::log(sum);
}

}  // namespace

template <class T>
void attention_forward(const AttentionGeometry& g, const AttentionRun& run, const AttentionProjections<const T>& x,
                       T* result, T* log_sums) {
  const double kept = 1 / (1 - g.options.dropout);
  parallel_for(g.samples * g.heads, g.queries * g.keys * g.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = i / g.heads, h = i % g.heads;
      for (std::int64_t t = 0; t < g.queries; ++t) {
        const Query<T> query(g, run, x, n, h, t);
        const T* const v = x.v + query.key_offset(n, h);
        const double sum = log_sum(query);
        T* const y = result + (n * g.queries + t) * g.result_stride() + h * g.width;
        std::fill_n(y, g.width, T(0));
        query.for_keys([&](std::int64_t s) {
          if (run.keeps(n, h, t, s))
            add_scaled(g.width, kept * math::exp(query.score(s) - sum), v + s * g.key_stride(), y);
        });
        log_sums[i * g.queries + t] = static_cast<T>(sum);
      }
    }
  });
}

// With p the weight and m the factor of dropout, y = sum m p v and delta = y dy:
//   dv += m p dy,  dscore = p (m dy v - delta),  dq += scale dscore k,  dk += scale dscore q
template <class T>
void attention_backward(const AttentionGeometry& g, const AttentionRun& run, const AttentionBackward<T>& a) {
  const double kept = 1 / (1 - g.options.dropout);
  parallel_for(g.samples * g.key_heads, g.queries * g.keys * g.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = i / g.key_heads, group = i % g.key_heads;
      const std::int64_t first = n * g.keys * g.key_stride() + group * g.width;
      for (std::int64_t s = 0; s < g.keys; ++s) {
        std::fill_n(a.dx.k + first + s * g.key_stride(), g.width, T(0));
        std::fill_n(a.dx.v + first + s * g.key_stride(), g.width, T(0));
      }
      for (std::int64_t h = group * g.group(); h < (group + 1) * g.group(); ++h) {
        for (std::int64_t t = 0; t < g.queries; ++t) {
          const Query<T> query(g, run, a.x, n, h, t);
          const std::int64_t at = (n * g.queries + t) * g.result_stride() + h * g.width;
          const T* const dy = a.dresult + at;
          T* const dq = a.dx.q + (n * g.queries + t) * g.query_stride() + h * g.width;
          const double sum = static_cast<double>(a.log_sums[(n * g.heads + h) * g.queries + t]);
          const double delta = dot(g.width, a.result + at, dy);
          std::fill_n(dq, g.width, T(0));
          query.for_keys([&](std::int64_t s) {
            const std::int64_t key = first + s * g.key_stride();
            const double p = math::exp(query.score(s) - sum), m = run.keeps(n, h, t, s) ? kept : 0;
            const double dscore = g.options.scale * p * (m * dot(g.width, dy, a.x.v + key) - delta);
            add_scaled(g.width, m * p, dy, a.dx.v + key);
            add_scaled(g.width, dscore, a.x.k + key, dq);
            add_scaled(g.width, dscore, query.q(), a.dx.k + key);
          });
        }
      }
    }
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                     \
  template void attention_forward<T>(const AttentionGeometry&, const AttentionRun&, \
                                     const AttentionProjections<const T>&, T*, T*); \
  template void attention_backward<T>(const AttentionGeometry&, const AttentionRun&, const AttentionBackward<T>&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
