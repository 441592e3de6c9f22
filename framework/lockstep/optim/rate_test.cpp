#include "lockstep/optim/rate_test.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::optim {
namespace {

constexpr double kNew = 0.1;                     // part of a new loss in the running mean
constexpr std::size_t kReserved = 1 << 20;       // rows at most: the largest --find-lr-steps
constexpr double kDiverged = 4;                  // times the lowest running mean
constexpr std::size_t kWidth = 20, kStart = 10;  // parts of the test: half a window of smoothing; the first rows

double smoothed(const std::vector<RateTest::Row>& rows, std::size_t at, std::size_t width) {
  double sum = 0, weights = 0;
  const std::size_t begin = at - std::min(at, width), end = std::min(at + width + 1, rows.size());
  for (std::size_t i = begin; i < end; ++i) {
    const double weight = static_cast<double>(width + 1 - (i > at ? i - at : at - i));
    sum += weight * rows[i].loss;
    weights += weight;
  }
  return sum / weights;
}

}  // namespace

RateTest::RateTest(double low, double high, std::int64_t steps)
    : low_(low), high_(high), steps_(static_cast<std::size_t>(steps)) {
  check(std::isfinite(high) && low > 0 && low < high && steps >= 2, "rate_test",
        "rates from {} to {} in {} steps, expected 0 < first < last, and at least 2 steps", low, high, steps);
  rows_.reserve(std::min(steps_, kReserved));  // memory that lacks ends the test before its first step
}

double RateTest::next_rate() const {
  const double part = static_cast<double>(rows_.size()) / static_cast<double>(steps_ - 1);
  return low_ * math::pow(high_ / low_, part);
}

void RateTest::add(double loss) {
  if (is_over()) return;
  if (!std::isfinite(loss)) {
    diverged_ = true;
    return;
  }
  const bool first = rows_.empty();
  rows_.push_back({.rate = next_rate(), .loss = loss});
  mean_ = first ? loss : (1 - kNew) * mean_ + kNew * loss;
  lowest_mean_ = first ? mean_ : std::min(lowest_mean_, mean_);
  const double scale = lowest_mean_ > 0 ? lowest_mean_ : std::max(-lowest_mean_, std::abs(rows_.front().loss));
  diverged_ = mean_ > lowest_mean_ + (kDiverged - 1) * scale;
}

RateTest::Result RateTest::result() const {
  Result result{.rows = rows_, .diverged = diverged_};
  std::vector<Row>& rows = result.rows;
  const std::size_t width = std::max<std::size_t>(1, steps_ / kWidth);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].smoothed = smoothed(rows_, i, width);
  if (rows.empty()) return result;
  result.lowest = static_cast<std::size_t>(std::ranges::min_element(rows, {}, &Row::smoothed) - rows.begin());
  double steepest = 0;
  for (std::size_t i = std::max<std::size_t>(1, steps_ / kStart); i < result.lowest; ++i) {
    const double slope = rows[i + 1].smoothed - rows[i - 1].smoothed;  // log(rate) grows evenly
    if (slope >= steepest) continue;
    steepest = slope;
    result.steepest = i;
  }
  return result;
}

}  // namespace lockstep::optim
