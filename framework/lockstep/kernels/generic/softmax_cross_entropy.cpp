#include "lockstep/kernels/generic/softmax_cross_entropy.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/kernels/generic/cross_entropy_blocks.h"
#include "lockstep/kernels/generic/reduce.h"

namespace lockstep::kernels::generic {

namespace {

template <class T>
double weight_sum(std::int64_t c, const T* weights) {
  if (weights == nullptr) return static_cast<double>(c);
  double total = 0;
  for (std::int64_t j = 0; j < c; ++j) total += static_cast<double>(weights[j]);
  return total;
}

}  // namespace

template <class T>
void softmax_cross_entropy_forward(const CrossEntropyOptions& o, const T* logits, TargetsOf<T> targets,
                                   const T* class_weights, T* probabilities, T* loss, T* weight_total) {
  check(o.label_smoothing >= 0 && o.label_smoothing <= 1, "cross_entropy", "label smoothing is {}, expected 0 to 1",
        o.label_smoothing);
  if (targets.classes) check_targets({o.samples, o.positions}, o.classes, targets.classes, o.ignore_index, o.source);
  const std::int64_t n = o.samples * o.positions;
  const CrossEntropyBlocks<T> blocks(o, targets, class_weights);
  double losses[detail::kSumParts] = {}, weights[detail::kSumParts] = {};
  const std::int64_t work = n * o.classes / detail::kSumParts * 16;  // exp costs many loads
  parallel_for(detail::kSumParts, work, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t begin_of_all = part_of(n, detail::kSumParts, begin).begin;
    const std::int64_t end_of_all = part_of(n, detail::kSumParts, end - 1).end;
    double of_block[kBlock];
    std::int64_t part = begin;
    for (std::int64_t first = begin_of_all, last = 0; first < end_of_all; first = last) {
      last = blocks.end(first, end_of_all);
      blocks.forward(first, last, logits, probabilities, of_block);
      for (std::int64_t i = first; i < last; ++i) {
        while (i >= part_of(n, detail::kSumParts, part).end) ++part;
        losses[part] += of_block[i - first];
        weights[part] += blocks.weight(i);
      }
    }
  });
  const double total = detail::pairwise(weights, detail::kSumParts);
  *weight_total = static_cast<T>(total);
  *loss = total == 0 ? T(0) : static_cast<T>(detail::pairwise(losses, detail::kSumParts) / total);
}

template <class T>
void softmax_cross_entropy_backward(const CrossEntropyOptions& o, const T* probabilities, TargetsOf<T> targets,
                                    const T* class_weights, T dloss, T weight_total, T* dlogits) {
  if (targets.classes) check_targets({o.samples, o.positions}, o.classes, targets.classes, o.ignore_index, o.source);
  const T scale = dloss == weight_total ? T(1) : weight_total == 0 ? T(0) : dloss / weight_total;
  const double spread = o.label_smoothing / static_cast<double>(std::max<std::int64_t>(o.classes, 1));
  const T all = static_cast<T>(spread * weight_sum(o.classes, class_weights));
  const CrossEntropyBlocks<T> blocks(o, targets, class_weights);
  parallel_for(o.samples * o.positions, o.classes, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin, last = 0; first < end; first = last) {
      last = blocks.end(first, end);
      blocks.backward(first, last, probabilities, scale, all, dlogits);
    }
  });
}

template <class T>
void one_hot(const CrossEntropyOptions& o, const std::int32_t* targets, T* y) {
  check_targets({o.samples, o.positions}, o.classes, targets, o.ignore_index, o.source);
  parallel_for(o.samples * o.classes, o.positions, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t sample = row / o.classes, c = row % o.classes;
      for (std::int64_t i = 0; i < o.positions; ++i) {
        const std::int32_t target = targets[sample * o.positions + i];
        y[row * o.positions + i] = target == c && target != o.ignore_index ? T(1) : T(0);
      }
    }
  });
}

template <class T>
void softmax_forward(std::int64_t n, std::int64_t c, const T* x, T* y) {
  parallel_for(n, c * 16, [=](std::int64_t begin, std::int64_t end) {
    double tops[kBlock], totals[kBlock];
    const std::int64_t block = rows_at_a_time(c);
    for (std::int64_t first = begin; first < end; first += block) {
      const std::int64_t rows = std::min(end - first, block);
      const T* from = x + first * c;
      T* to = y + first * c;
      sum_exponentials(rows, c, from, tops, totals);
      for_exponentials(rows, c, from, tops, [&](std::int64_t row, std::int64_t at, std::int64_t stop, const double* e) {
        for (std::int64_t i = at; i < stop; ++i) to[i] = static_cast<T>(e[i - at] / totals[row]);
      });
    }
  });
}

template <class T>
void softmax_backward(std::int64_t n, std::int64_t c, const T* y, const T* dy, T* dx) {
  parallel_for(n, c, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin * c; at < end * c; at += c) {
      double product = 0;
      for (std::int64_t j = at; j < at + c; ++j) product += static_cast<double>(y[j]) * static_cast<double>(dy[j]);
      for (std::int64_t j = at; j < at + c; ++j)
        dx[j] = static_cast<T>(static_cast<double>(y[j]) * (static_cast<double>(dy[j]) - product));
    }
  });
}

namespace {

// Adds one position of class `target` with this prediction.
void count_one(std::int64_t classes, bool matrix, std::int64_t target, std::int64_t predicted, double* counts) {
  if (matrix) {
    ++counts[target * classes + predicted];
    return;
  }
  if (target == predicted) ++counts[target];
  ++counts[classes + predicted];
  ++counts[2 * classes + target];
}

}  // namespace

template <class T>
void class_counts(const CrossEntropyOptions& o, const T* logits, const std::int32_t* targets, bool matrix,
                  double* counts) {
  check_targets({o.samples, o.positions}, o.classes, targets, o.ignore_index, o.source);
  std::fill_n(counts, (matrix ? o.classes : 3) * o.classes, 0.0);
  constexpr std::int64_t kAtOnce = 256;  // positions, which lie beside each other in each class
  T best[kAtOnce];
  std::int32_t predicted[kAtOnce];
  for (std::int64_t sample = 0; sample < o.samples; ++sample) {
    const T* const of_sample = logits + sample * o.classes * o.positions;
    for (std::int64_t first = 0; first < o.positions; first += kAtOnce) {
      const std::int64_t count = std::min(kAtOnce, o.positions - first);
      std::copy_n(of_sample + first, count, best);
      std::fill_n(predicted, count, 0);
      for (std::int64_t c = 1; c < o.classes; ++c) {
        const T* const row = of_sample + c * o.positions + first;
        for (std::int64_t i = 0; i < count; ++i) {
          const bool larger = row[i] > best[i] || (row[i] != row[i] && best[i] == best[i]);
          best[i] = larger ? row[i] : best[i];
          predicted[i] = larger ? static_cast<std::int32_t>(c) : predicted[i];
        }
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int32_t target = targets[sample * o.positions + first + i];
        if (target != o.ignore_index) count_one(o.classes, matrix, target, predicted[i], counts);
      }
    }
  }
}

template <class T>
void positive_counts(std::int64_t elements, const T* logits, const T* targets, bool matrix, double* counts) {
  std::fill_n(counts, matrix ? 4 : 6, 0.0);
  for (std::int64_t i = 0; i < elements; ++i) {
    if (targets[i] != targets[i]) continue;
    count_one(2, matrix, targets[i] > T(0.5) ? 1 : 0, logits[i] <= 0 ? 0 : 1, counts);  // a NaN is above 0
  }
}

template <class T>
double count_correct(std::int64_t n, std::int64_t c, std::int64_t k, const T* logits, const std::int32_t* targets,
                     const TargetSource& source) {
  check_targets({n, 1}, c, targets, {}, source);
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const T* z = logits + i * c;
    const std::int64_t y = targets[i];
    std::int64_t ahead = 0;  // classes that come before the target
    for (std::int64_t j = 0; j < y; ++j) ahead += !(z[j] < z[y]);
    for (std::int64_t j = y + 1; j < c; ++j) ahead += !(z[j] <= z[y]);
    correct += ahead < k;
  }
  return static_cast<double>(correct);
}

#define LOCKSTEP_INSTANTIATE(T)                                                                                        \
  template void softmax_cross_entropy_forward<T>(const CrossEntropyOptions&, const T*, TargetsOf<T>, const T*, T*, T*, \
                                                 T*);                                                                  \
  template void softmax_cross_entropy_backward<T>(const CrossEntropyOptions&, const T*, TargetsOf<T>, const T*, T, T,  \
                                                  T*);                                                                 \
  template void one_hot(const CrossEntropyOptions&, const std::int32_t*, T*);                                          \
  template void softmax_forward(std::int64_t, std::int64_t, const T*, T*);                                             \
  template void softmax_backward(std::int64_t, std::int64_t, const T*, const T*, T*);                                  \
  template void class_counts(const CrossEntropyOptions&, const T*, const std::int32_t*, bool, double*);                \
  template void positive_counts(std::int64_t, const T*, const T*, bool, double*);                                      \
  template double count_correct<T>(std::int64_t, std::int64_t, std::int64_t, const T*, const std::int32_t*,            \
                                   const TargetSource&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
