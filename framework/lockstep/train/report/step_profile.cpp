#include "lockstep/train/report/step_profile.h"

#include <omp.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace lockstep::train {
namespace {

constexpr std::int64_t kColdRuns = 2;
constexpr const char* kPartNames[StepProfile::kParts] = {
    "input copied into the plan", "gradients joined and sent on during backward", "waiting for other ranks' gradients",
    "update, derived copies, running statistics"};

}  // namespace

void StepProfile::begin_step() {
  cold_ = false;
  step_parts_ = {};
  start_ = Clock::now();
}

void StepProfile::begin_run(plan::Plan& plan) {
  Record& record = plans_[&plan];
  if (record.seen++ == 0) {
    plan.start_profile();
    record.seconds.resize(plan.seconds().size());
  }
  cold_ = cold_ || record.seen <= kColdRuns;
  ++record.in_step;
}

void StepProfile::end_step() {
  const double took = std::chrono::duration<double>(Clock::now() - start_).count();
  for (auto& [plan, record] : plans_) {
    if (record.in_step == 0) continue;
    if (!cold_) {
      for (std::size_t s = 0; s < record.seconds.size(); ++s) record.seconds[s] += plan->seconds()[s];
      record.runs += record.in_step;
    }
    record.in_step = 0;
    plan->start_profile();
  }
  if (cold_) return;
  for (std::size_t p = 0; p < kParts; ++p) parts_[p] += step_parts_[p];
  seconds_ += took;
  ++steps_;
}

double StepProfile::peak_of(const plan::PlanStep& step) const {
  const auto has = [&](DType dtype) {
    return std::ranges::any_of(step.input_types, [=](const Type& t) { return t.dtype == dtype; });
  };
  if (has(DType::BF16) && peaks_.bf16_flops > 0) return peaks_.bf16_flops;
  return has(DType::F64) ? 0 : peaks_.f32_flops;
}

Profile StepProfile::result() const {
  Profile profile{.steps = steps_, .seconds = seconds_, .threads = omp_get_max_threads(), .peaks = peaks_};
  std::map<std::tuple<std::string, std::string, std::string>, ProfileSums> nodes;
  for (const auto& [plan, record] : plans_) {
    if (record.runs == 0) continue;
    for (std::size_t s = 0; s < record.seconds.size(); ++s) {
      const plan::PlanStep& step = plan->steps()[s];
      if (step.constant && record.seconds[s] == 0) continue;  // not run, because parameters did not change
      const auto calls = static_cast<double>(record.runs);
      const double flops = calls * step.flops, peak = peak_of(step);
      nodes[{step.path, std::string(step.op->name()), step.offer.implementation}].add(
          {.calls = calls,
           .seconds = record.seconds[s],
           .flops = flops,
           .bytes = calls * static_cast<double>(plan->bytes(step)),
           .flops_at_peak = peak > 0 ? flops / peak : 0});
    }
  }
  for (const auto& [name, sums] : nodes) {
    const auto& [module_path, op, implementation] = name;
    profile.nodes.push_back({module_path, op, implementation, sums});
  }
  for (std::size_t p = 0; p < kParts; ++p) profile.parts.push_back({kPartNames[p], parts_[p]});
  return profile;
}

}  // namespace lockstep::train
