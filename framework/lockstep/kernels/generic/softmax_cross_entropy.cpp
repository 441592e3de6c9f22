#include "lockstep/kernels/generic/softmax_cross_entropy.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/kernels/common/math.h"
#include "lockstep/kernels/generic/reduce.h"

namespace lockstep::kernels::generic {

namespace {

// Before any parallel loop: an exception must not leave one.
void check_targets(std::int64_t n, std::int64_t c, const std::int32_t* targets, const TargetSource& source) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (targets[i] >= 0 && targets[i] < c) continue;
    const std::string place = source.place.empty() ? "" : source.place + ": ";
    const std::string what = source.field.empty() ? "the target" : fmt::format("'{}'", source.field);
    throw SampleError(fmt::format("[{}] {}{} of ", source.op, place, what), i,
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

// Calls visit(j, exp(x[j] - shift)) for all j < n, in order.
template <class T, class Visit>
void for_exponentials(std::int64_t n, const T* x, double shift, const Visit& visit) {
  constexpr std::int64_t kPart = 256;
  double values[kPart];
  for (std::int64_t first = 0; first < n; first += kPart) {
    const std::int64_t count = std::min(kPart, n - first);
    for (std::int64_t j = 0; j < count; ++j) values[j] = static_cast<double>(x[first + j]) - shift;
    exp_all(count, values, values);
    for (std::int64_t j = 0; j < count; ++j) visit(first + j, values[j]);
  }
}

// One row: probabilities out of logits, and the sample's loss.
template <class T>
double row_forward(const CrossEntropyOptions& o, const T* z, std::int64_t y, const T* weights, T* p) {
  double top = static_cast<double>(z[0]);
  for (std::int64_t j = 1; j < o.classes; ++j) top = std::max(top, static_cast<double>(z[j]));
  double total = 0;
  for_exponentials(o.classes, z, top, [&](std::int64_t, double e) { total += e; });
  const double log_total = math::log(total) + top, z_y = static_cast<double>(z[y]);
  const auto weight = [weights](std::int64_t j) { return weights ? static_cast<double>(weights[j]) : 1.0; };
  double loss = (1 - o.label_smoothing) * weight(y) * (log_total - z_y);
  if (o.label_smoothing > 0) {
    double smooth = 0;
    for (std::int64_t j = 0; j < o.classes; ++j) smooth += weight(j) * (log_total - static_cast<double>(z[j]));
    loss += o.label_smoothing / static_cast<double>(o.classes) * smooth;
  }
  for_exponentials(o.classes, z, log_total, [&](std::int64_t j, double e) { p[j] = static_cast<T>(e); });
  return loss;
}

}  // namespace

template <class T>
void softmax_cross_entropy_forward(const CrossEntropyOptions& o, const T* logits, const std::int32_t* targets,
                                   const T* class_weights, T* probabilities, T* loss, T* weight_total) {
  check(o.label_smoothing >= 0 && o.label_smoothing <= 1, "cross_entropy", "label smoothing is {}, expected 0 to 1",
        o.label_smoothing);
  check_targets(o.samples, o.classes, targets, o.source);
  double losses[detail::kSumParts] = {}, weights[detail::kSumParts] = {};
  const std::int64_t work = o.samples * o.classes / detail::kSumParts * 16;  // an exponential costs many loads
  parallel_for(detail::kSumParts, work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const Range rows = part_of(o.samples, detail::kSumParts, part);
      for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        const std::int64_t at = i * o.classes;
        losses[part] += row_forward(o, logits + at, targets[i], class_weights, probabilities + at);
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
    for (std::int64_t at = begin * c; at < end * c; at += c) {
      const double top = c > 0 ? static_cast<double>(*std::max_element(x + at, x + at + c)) : 0;
      double total = 0;
      for_exponentials(c, x + at, top, [&](std::int64_t, double e) { total += e; });
      for_exponentials(c, x + at, top, [&](std::int64_t j, double e) { y[at + j] = static_cast<T>(e / total); });
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
