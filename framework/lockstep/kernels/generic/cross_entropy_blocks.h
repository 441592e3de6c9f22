// Cross entropy of a block of positions: its losses and probabilities, and the gradient of its logits. Logits are
// [samples, classes, positions]. A sample with one position is a row, and a block is some rows; otherwise a block is
// some positions of one sample, which lie beside each other for each class. Both kinds compute the same for a position.
#pragma once

#include "lockstep/core/math.h"
#include "lockstep/kernels/generic/exponentials.h"
#include "lockstep/kernels/generic/softmax_cross_entropy.h"

namespace lockstep::kernels::generic {

// Positions are numbered through all samples.
template <class T>
class CrossEntropyBlocks {
 public:
  CrossEntropyBlocks(const CrossEntropyOptions& options, const CrossEntropyTargets<T>& targets, const T* class_weights)
      : o_(options), t_(targets), weights_(class_weights) {}

  // The end of the block that begins at position `first`, at most `last`.
  std::int64_t end(std::int64_t first, std::int64_t last) const {
    if (o_.positions == 1) return std::min(last, first + rows_at_a_time(o_.classes));
    return std::min({last, first + kBlock, (first / o_.positions + 1) * o_.positions});
  }
  // The weight of a position in the mean.
  double weight(std::int64_t i) const {
    if (!counts(i)) return 0;
    const double own = t_.weights ? static_cast<double>(t_.weights[i]) : 1.0;
    return t_.classes && weights_ ? own * static_cast<double>(weights_[t_.classes[i]]) : own;
  }
  // Writes probabilities and losses[0] to losses[last - first - 1], times the weights of the positions.
  void forward(std::int64_t first, std::int64_t last, const T* z, T* p, double* losses) const {
    const std::int64_t at = offset(first);
    if (o_.positions == 1) {
      rows_forward(first, last - first, z + at, p + at, losses);
    } else {
      columns_forward(first, last - first, z + at, p + at, losses);
    }
    for (std::int64_t i = first; i < last; ++i) {
      double& loss = losses[i - first];
      if (!counts(i)) loss = 0;
      if (t_.weights && counts(i)) loss *= static_cast<double>(t_.weights[i]);
    }
  }
  // `all` is the sum over classes of smoothing times class weight.
  void backward(std::int64_t first, std::int64_t last, const T* p, T scale, T all, T* d) const {
    const std::int64_t at = offset(first);
    if (o_.positions > 1) return columns_backward(first, last - first, p + at, scale, all, d + at);
    for (std::int64_t i = first; i < last; ++i) row_backward(i, p + offset(i), scale, all, d + offset(i));
  }

 private:
  // The place of a position's class 0.
  std::int64_t offset(std::int64_t i) const { return i / o_.positions * o_.classes * o_.positions + i % o_.positions; }
  bool counts(std::int64_t i) const {
    if (t_.weights && t_.weights[i] == 0) return false;
    if (!t_.classes) return true;
    if (t_.classes[i] == o_.ignore_index) return false;
    return !weights_ || weights_[t_.classes[i]] != 0 || o_.label_smoothing > 0;
  }
  double class_weight(std::int64_t j) const { return weights_ ? static_cast<double>(weights_[j]) : 1.0; }
  double spread() const { return o_.label_smoothing / static_cast<double>(std::max<std::int64_t>(o_.classes, 1)); }
  // A probability after smoothing, times the weight of its class.
  double wanted(T probability, std::int64_t j) const {
    return class_weight(j) * ((1 - o_.label_smoothing) * static_cast<double>(probability) + spread());
  }
  // A class of probability 0 adds nothing, whatever its logit is.
  double term(T probability, std::int64_t j, double surprise) const {
    const double t = wanted(probability, j);
    return t == 0 ? 0 : t * surprise;
  }
  double weighted(std::int64_t j, double surprise) const {
    const double w = class_weight(j);
    return w == 0 ? 0 : w * surprise;
  }
  double hard_loss(double surprise_of_target, std::int64_t y, double smooth) const {
    const double w = (1 - o_.label_smoothing) * class_weight(y);
    double loss = w == 0 ? 0 : w * surprise_of_target;
    if (o_.label_smoothing > 0) loss += spread() * smooth;
    return loss;
  }
  T hit(std::int64_t y) const { return static_cast<T>(1 - o_.label_smoothing) * (weights_ ? weights_[y] : T(1)); }
  // The gradient of the logit of the target itself.
  T of_target(std::int64_t y, T p_y, T scale, T all) const {
    const T smooth = static_cast<T>(spread()) * (weights_ ? weights_[y] : T(1));
    return scale * (hit(y) * (p_y - T(1)) + (all * p_y - smooth));
  }
  T own_scale(std::int64_t i, T scale) const { return t_.weights ? scale * t_.weights[i] : scale; }

  void rows_forward(std::int64_t first, std::int64_t rows, const T* z, T* p, double* losses) const;
  void columns_forward(std::int64_t first, std::int64_t count, const T* z, T* p, double* losses) const;
  void row_backward(std::int64_t i, const T* p, T scale, T all, T* d) const;
  void columns_backward(std::int64_t first, std::int64_t count, const T* p, T scale, T all, T* d) const;

  const CrossEntropyOptions& o_;
  const CrossEntropyTargets<T>& t_;
  const T* weights_;
};

template <class T>
void CrossEntropyBlocks<T>::rows_forward(std::int64_t first, std::int64_t rows, const T* z, T* p,
                                         double* losses) const {
  double tops[kBlock] = {}, totals[kBlock];  // zeros: gcc does not see that all that is read was written
  const std::int64_t c = o_.classes;
  sum_exponentials(rows, c, z, tops, totals);
  for (std::int64_t row = 0; row < rows; ++row) {
    const double log_total = totals[row] = math::log(totals[row]) + tops[row];
    const T* x = z + row * c;
    const auto surprise = [&](std::int64_t j) { return log_total - static_cast<double>(x[j]); };
    double sum = 0;
    if (t_.classes == nullptr) {
      const T* soft = t_.probabilities + (first + row) * c;
      for (std::int64_t j = 0; j < c; ++j) sum += term(soft[j], j, surprise(j));
      losses[row] = sum;
    } else if (counts(first + row)) {
      const std::int64_t y = t_.classes[first + row];
      for (std::int64_t j = 0; j < c && o_.label_smoothing > 0; ++j) sum += weighted(j, surprise(j));
      losses[row] = hard_loss(surprise(y), y, sum);
    }
  }
  for_exponentials(rows, c, z, totals, [p](std::int64_t, std::int64_t begin, std::int64_t end, const double* e) {
    for (std::int64_t i = begin; i < end; ++i) p[i] = static_cast<T>(e[i - begin]);
  });
}

template <class T>
void CrossEntropyBlocks<T>::columns_forward(std::int64_t first, std::int64_t count, const T* z, T* p,
                                            double* losses) const {
  double tops[kBlock], totals[kBlock], sums[kBlock] = {};
  const std::int64_t c = o_.classes, stride = o_.positions;
  sum_column_exponentials(count, c, stride, z, tops, totals);
  for (std::int64_t i = 0; i < count; ++i) totals[i] = math::log(totals[i]) + tops[i];
  const auto surprise = [&](std::int64_t i, std::int64_t j) {
    return totals[i] - static_cast<double>(z[j * stride + i]);
  };
  const T* soft = t_.classes ? nullptr : t_.probabilities + offset(first);
  for (std::int64_t j = 0; j < c && (soft || o_.label_smoothing > 0); ++j) {
    for (std::int64_t i = 0; i < count; ++i)
      sums[i] += soft ? term(soft[j * stride + i], j, surprise(i, j)) : weighted(j, surprise(i, j));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (soft) {
      losses[i] = sums[i];
    } else if (counts(first + i)) {
      const std::int64_t y = t_.classes[first + i];
      losses[i] = hard_loss(surprise(i, y), y, sums[i]);
    }
  }
  for_column_exponentials(count, c, stride, z, totals, [&](std::int64_t j, const double* e) {
    for (std::int64_t i = 0; i < count; ++i) p[j * stride + i] = static_cast<T>(e[i]);
  });
}

template <class T>
void CrossEntropyBlocks<T>::row_backward(std::int64_t i, const T* p, T scale, T all, T* d) const {
  const std::int64_t c = o_.classes;
  const T mine = own_scale(i, scale);
  if (!counts(i)) {
    std::fill_n(d, c, T(0));
  } else if (t_.classes) {
    const std::int64_t y = t_.classes[i];
    const T each = static_cast<T>(spread()), p_y = p[y], factor = hit(y) + all;
    if (weights_) {
      for (std::int64_t j = 0; j < c; ++j) d[j] = mine * (factor * p[j] - each * weights_[j]);
    } else {
      for (std::int64_t j = 0; j < c; ++j) d[j] = mine * (factor * p[j] - each);
    }
    d[y] = of_target(y, p_y, mine, all);
  } else {
    const T* soft = t_.probabilities + i * c;
    double factor = 0;
    for (std::int64_t j = 0; j < c; ++j) factor += wanted(soft[j], j);
    for (std::int64_t j = 0; j < c; ++j)
      d[j] = mine * static_cast<T>(factor * static_cast<double>(p[j]) - wanted(soft[j], j));
  }
}

template <class T>
void CrossEntropyBlocks<T>::columns_backward(std::int64_t first, std::int64_t count, const T* p, T scale, T all,
                                             T* d) const {
  const std::int64_t c = o_.classes, stride = o_.positions;
  const T* soft = t_.classes ? nullptr : t_.probabilities + offset(first);
  bool counted[kBlock];
  T mine[kBlock], p_y[kBlock];
  double factor[kBlock] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    counted[i] = counts(first + i);
    mine[i] = own_scale(first + i, scale);
    if (soft || !counted[i]) continue;
    p_y[i] = p[t_.classes[first + i] * stride + i];
    factor[i] = static_cast<double>(hit(t_.classes[first + i]) + all);
  }
  for (std::int64_t j = 0; j < c && soft; ++j) {
    for (std::int64_t i = 0; i < count; ++i) factor[i] += wanted(soft[j * stride + i], j);
  }
  const T each = static_cast<T>(spread());
  for (std::int64_t j = 0; j < c; ++j) {
    const T less = weights_ ? each * weights_[j] : each;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = j * stride + i;
      const T slope = soft ? static_cast<T>(factor[i] * static_cast<double>(p[at]) - wanted(soft[at], j))
                           : static_cast<T>(factor[i]) * p[at] - less;
      d[at] = counted[i] ? mine[i] * slope : T(0);
    }
  }
  for (std::int64_t i = 0; i < count && !soft; ++i) {
    if (!counted[i]) continue;
    const std::int64_t y = t_.classes[first + i];
    d[y * stride + i] = of_target(y, p_y[i], mine[i], all);
  }
}

}  // namespace lockstep::kernels::generic
