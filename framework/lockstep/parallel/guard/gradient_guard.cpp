#include "lockstep/parallel/guard/gradient_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/parallel/reduce/bucket_blocks.h"

namespace lockstep::parallel {
namespace {

const std::string kTables = "the sparse tables";  // which no parameter names
constexpr double kWarmUp = 20;                    // steps before the mean is used
constexpr double kMemory = 100;                   // steps over which the mean averages

}  // namespace

std::string GradientFinding::str() const {
  if (!finite) return fmt::format("the gradient{}{} is not finite", parameter.empty() ? "" : " of ", parameter);
  if (!whole)
    return fmt::format("the gradient in the blocks of {} has norm {:.4g}, the limit is {:.4g}", parameter, norm, limit);
  return fmt::format("the gradient has norm {:.4g}, the limit is {:.4g}, largest in the blocks of {}", norm, limit,
                     parameter);
}

GradientGuard::GradientGuard(const plan::ParameterStore& store, const GradientGuardOptions& options)
    : options_(options) {
  const std::vector<plan::Bucket>& buckets = store.buckets();
  const BucketBlocks blocks(buckets);
  watched_.push_back({"", {0, blocks.count()}});
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (const plan::BucketEntry& e : buckets[b].entries)
      watched_.push_back({e.name, blocks.at(b, {e.offset, e.offset + e.elements})});
  }
  norms_.resize(watched_.size());
  state_.resize(1 + watched_.size());
}

// Of several findings the one with the largest fraction of its limit is reported.
void GradientGuard::judge(std::size_t w, double limit) {
  const double part = norms_[w] / limit;
  if (part < options_.warn || part < worst_) return;
  worst_ = part;
  finding_.whole = w == 0;
  finding_.parameter = watched_.size() == 1 ? kTables : watched_[w == 0 ? largest() : w].name;
  finding_.norm = norms_[w];
  finding_.limit = limit;
  finding_.level = part > 1 ? GradientFinding::Level::Act : GradientFinding::Level::Warn;
}

std::size_t GradientGuard::largest() const {
  return static_cast<std::size_t>(std::max_element(norms_.begin() + 1, norms_.end()) - norms_.begin());
}

const GradientFinding& GradientGuard::look(std::span<const double> squares, double scale, double further) {
  finding_ = {};
  worst_ = 0;
  for (std::size_t w = 0; w < watched_.size(); ++w) {
    double sum = 0;
    for (const double block : part_of_blocks(squares, watched_[w].blocks)) sum += block;
    norms_[w] = std::sqrt(w == 0 ? sum + further : sum) * scale;
  }
  if (!std::isfinite(norms_[0])) {
    const auto bad = std::find_if(norms_.begin() + 1, norms_.end(), [](double n) { return !std::isfinite(n); });
    finding_.level = GradientFinding::Level::Act;
    finding_.finite = false;
    finding_.parameter = bad == norms_.end() ? kTables : watched_[static_cast<std::size_t>(bad - norms_.begin())].name;
    return finding_;
  }
  if (options_.norm > 0) judge(0, options_.norm);
  if (options_.spike > 0 && state_[0] >= kWarmUp) {
    for (std::size_t w = 0; w < watched_.size(); ++w) {
      if (state_[1 + w] > 0) judge(w, options_.spike * state_[1 + w]);
    }
  }
  return finding_;
}

void GradientGuard::accept() {
  const double weight = 1 / std::min(++state_[0], kMemory);
  for (std::size_t w = 0; w < norms_.size(); ++w) state_[1 + w] += weight * (norms_[w] - state_[1 + w]);
}

}  // namespace lockstep::parallel
