#include "lockstep/kernels/generic/softmax_cross_entropy.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/kernels/generic/reduce.h"
#include "lockstep/kernels/native/math.h"

namespace lockstep::kernels::generic {

namespace {

// Checked before any parallel loop, as an exception must not leave such a loop.
void check_targets(std::int64_t n, std::int64_t c, const std::int32_t* targets, const TargetSource& source) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (targets[i] >= 0 && targets[i] < c) continue;
    const std::string path = source.path.empty() ? "" : source.path + ": ";
    const std::string what = source.field.empty() ? "the target" : fmt::format("'{}'", source.field);
    throw SampleError(fmt::format("[{}] {}{} of ", source.op, path, what), i,
                      fmt::format(" is {}, expected a class from 0 to {}", targets[i], c - 1));
  }
}

template <class T>
double weight_sum(std::int64_t c, const T* weights) {
  if (weights == nullptr) return static_cast<double>(c);
  double total = 0;
  for (std::int64_t j = 0; j < c; ++j) total += static_cast<double>(weights[j]);
  return total;
}

// The number of exponentials that are computed at a time: of several whole rows, or of a part of one row.
constexpr std::int64_t kBlock = 256;

std::int64_t rows_at_a_time(std::int64_t c) { return std::max<std::int64_t>(kBlock / std::max<std::int64_t>(c, 1), 1); }

// Calls visit(row, begin, end) for the parts of rows of c elements that lie in [begin, end), in order.
template <class Visit>
void for_rows(std::int64_t begin, std::int64_t end, std::int64_t c, const Visit& visit) {
  while (begin < end) {
    const std::int64_t row = begin / c, stop = std::min(end, (row + 1) * c);
    visit(row, begin, stop);
    begin = stop;
  }
}

// Calls visit(row, begin, end, e) for parts of rows, in order: e[i] is exp(x[begin + i] - shifts[row]).
template <class T, class Visit>
void for_exponentials(std::int64_t rows, std::int64_t c, const T* x, const double* shifts, const Visit& visit) {
  double values[kBlock];
  for (std::int64_t first = 0; first < rows * c; first += kBlock) {
    const std::int64_t last = std::min(rows * c, first + kBlock);
    for_rows(first, last, c, [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) values[i - first] = static_cast<double>(x[i]) - shifts[row];
    });
    native::exp_all(last - first, values, values);
    for_rows(first, last, c, [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
      visit(row, begin, end, values + (begin - first));
    });
  }
}

// Per row the largest value, and the sum of exp(x - largest).
template <class T>
void sum_exponentials(std::int64_t rows, std::int64_t c, const T* x, double* tops, double* totals) {
  for (std::int64_t row = 0; row < rows; ++row) {
    tops[row] = c > 0 ? static_cast<double>(*std::max_element(x + row * c, x + (row + 1) * c)) : 0;
    totals[row] = 0;
  }
  for_exponentials(rows, c, x, tops, [&](std::int64_t row, std::int64_t begin, std::int64_t end, const double* e) {
    double total = totals[row];
    for (std::int64_t i = 0; i < end - begin; ++i) total += e[i];
    totals[row] = total;
  });
}

// The loss of a sample, whose sum of exponentials has this logarithm.
template <class T>
double row_loss(const CrossEntropyOptions& o, const T* z, std::int64_t y, const T* weights, double log_total) {
  const auto weight = [weights](std::int64_t j) { return weights ? static_cast<double>(weights[j]) : 1.0; };
  double loss = (1 - o.label_smoothing) * weight(y) * (log_total - static_cast<double>(z[y]));
  if (o.label_smoothing > 0) {
    double smooth = 0;
    for (std::int64_t j = 0; j < o.classes; ++j) smooth += weight(j) * (log_total - static_cast<double>(z[j]));
    loss += o.label_smoothing / static_cast<double>(o.classes) * smooth;
  }
  return loss;
}

// Probabilities out of logits of up to rows_at_a_time() rows, and their losses.
template <class T>
void rows_forward(const CrossEntropyOptions& o, std::int64_t rows, const T* z, const std::int32_t* targets,
                  const T* weights, T* p, double* losses) {
  double tops[kBlock], totals[kBlock];
  sum_exponentials(rows, o.classes, z, tops, totals);
  for (std::int64_t row = 0; row < rows; ++row) {
    totals[row] = math::log(totals[row]) + tops[row];
    losses[row] = row_loss(o, z + row * o.classes, targets[row], weights, totals[row]);
  }
  for_exponentials(rows, o.classes, z, totals,
                   [p](std::int64_t, std::int64_t begin, std::int64_t end, const double* e) {
                     for (std::int64_t i = begin; i < end; ++i) p[i] = static_cast<T>(e[i - begin]);
                   });
}

}  // namespace

template <class T>
void softmax_cross_entropy_forward(const CrossEntropyOptions& o, const T* logits, const std::int32_t* targets,
                                   const T* class_weights, T* probabilities, T* loss, T* weight_total) {
  check(o.label_smoothing >= 0 && o.label_smoothing <= 1, "cross_entropy", "label smoothing is {}, expected 0 to 1",
        o.label_smoothing);
  check_targets(o.samples, o.classes, targets, o.source);
  double losses[detail::kSumParts] = {}, weights[detail::kSumParts] = {};
  const std::int64_t work = o.samples * o.classes / detail::kSumParts * 16;  // exp costs many loads
  parallel_for(detail::kSumParts, work, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first_row = part_of(o.samples, detail::kSumParts, begin).begin;
    const std::int64_t last_row = part_of(o.samples, detail::kSumParts, end - 1).end;
    const std::int64_t block = rows_at_a_time(o.classes);
    double of_row[kBlock];
    std::int64_t part = begin;
    for (std::int64_t first = first_row; first < last_row; first += block) {
      const std::int64_t last = std::min(last_row, first + block), at = first * o.classes;
      rows_forward(o, last - first, logits + at, targets + first, class_weights, probabilities + at, of_row);
      for (std::int64_t i = first; i < last; ++i) {
        while (i >= part_of(o.samples, detail::kSumParts, part).end) ++part;
        losses[part] += of_row[i - first];
        weights[part] += class_weights ? static_cast<double>(class_weights[targets[i]]) : 1.0;
      }
    }
  });
  const double total = detail::pairwise(weights, detail::kSumParts);
  *weight_total = static_cast<T>(total);
  *loss = total == 0 ? T(0) : static_cast<T>(detail::pairwise(losses, detail::kSumParts) / total);
}

template <class T>
void softmax_cross_entropy_backward(const CrossEntropyOptions& o, const T* probabilities, const std::int32_t* targets,
                                    const T* class_weights, T dloss, T weight_total, T* dlogits) {
  check_targets(o.samples, o.classes, targets, o.source);
  const T scale = dloss == weight_total ? T(1) : dloss / weight_total;
  const double spread = o.label_smoothing / static_cast<double>(std::max<std::int64_t>(o.classes, 1));
  const T all = static_cast<T>(spread * weight_sum(o.classes, class_weights)), each = static_cast<T>(spread);
  parallel_for(o.samples, o.classes, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* p = probabilities + i * o.classes;
      T* d = dlogits + i * o.classes;
      const T hit = static_cast<T>(1 - o.label_smoothing) * (class_weights ? class_weights[targets[i]] : T(1));
      const T p_y = p[targets[i]], factor = hit + all;
      if (class_weights) {
        for (std::int64_t j = 0; j < o.classes; ++j) d[j] = scale * (factor * p[j] - each * class_weights[j]);
      } else {
        for (std::int64_t j = 0; j < o.classes; ++j) d[j] = scale * (factor * p[j] - each);
      }
      const T smooth = each * (class_weights ? class_weights[targets[i]] : T(1));
      d[targets[i]] = scale * (hit * (p_y - T(1)) + (all * p_y - smooth));
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

template <class T>
double count_correct(std::int64_t n, std::int64_t c, std::int64_t k, const T* logits, const std::int32_t* targets,
                     const TargetSource& source) {
  check_targets(n, c, targets, source);
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
  template void softmax_cross_entropy_forward<T>(const CrossEntropyOptions&, const T*, const std::int32_t*, const T*,  \
                                                 T*, T*, T*);                                                          \
  template void softmax_cross_entropy_backward<T>(const CrossEntropyOptions&, const T*, const std::int32_t*, const T*, \
                                                  T, T, T*);                                                           \
  template void softmax_forward(std::int64_t, std::int64_t, const T*, T*);                                             \
  template void softmax_backward(std::int64_t, std::int64_t, const T*, const T*, T*);                                  \
  template double count_correct<T>(std::int64_t, std::int64_t, std::int64_t, const T*, const std::int32_t*,            \
                                   const TargetSource&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(double)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::generic
