#include "lockstep/train/guard/step_inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/finite.h"
#include "lockstep/train/guard/nonfinite.h"
#include "lockstep/train/guard/suspects.h"
#include "lockstep/train/prepare/batch_check.h"

namespace lockstep::train {
namespace {

const std::string kInNetwork = "first in ";  // begins a finding that is neither about samples nor about parameters

// Beats in every step of a plan.
class BeatingHooks : public plan::PlanHooks {
 public:
  explicit BeatingHooks(Heartbeat& heartbeat) : heartbeat_(heartbeat) {}
  void poll() override { heartbeat_.beat(); }

 private:
  Heartbeat& heartbeat_;
};

// Returns the parameters in the same blocks of memory: the guard examines them together.
std::vector<std::string> neighbours(const plan::ParameterStore& store, const std::string& name) {
  constexpr std::int64_t kBlock = parallel::BucketReducer::kBlock;
  const plan::Bucket& bucket = store.buckets()[static_cast<std::size_t>(store.bucket_of(store.find(name)))];
  const plan::BucketEntry& own = *std::ranges::find(bucket.entries, name, &plan::BucketEntry::name);
  const std::int64_t begin = own.offset / kBlock, end = (own.offset + own.elements + kBlock - 1) / kBlock;
  std::vector<std::string> names;
  for (const plan::BucketEntry& e : bucket.entries) {
    if (e.offset < end * kBlock && e.offset + e.elements > begin * kBlock) names.push_back(e.name);
  }
  return names;
}

}  // namespace

std::string StepInspection::find_bad_input(plan::Plan& plan, const data::Batch& batch, Range rows) const {
  for (const data::Field& f : prepared_.fields()) {
    const void* input = plan.input(f.name);
    const std::int64_t each = f.shape.elements();
    const std::int64_t at = first_nonfinite(input, f.dtype, each * rows.size());
    if (at < 0) continue;
    const std::int64_t row = rows.begin + at / each;
    const auto& ids = batch.step.samples;
    if (static_cast<std::size_t>(row) < ids.size() && !batch.step.is_streamed())
      return fmt::format("'{}' of sample {} is not finite", f.name, ids[static_cast<std::size_t>(row)]);
    return fmt::format("'{}' of {} is not finite", f.name, sample_name(batch, row));
  }
  return "";
}

std::string StepInspection::find_nonfinite(const LocalBatch& local, std::int64_t update) {
  std::string found;
  for (const NamedParameter& p : prepared_.store().parameters()) {
    const Tensor value = prepared_.store().read(p.name);
    prepared_.heartbeat().beat();
    if (found.empty() && first_nonfinite(value.raw(), value.dtype(), value.elements()) >= 0)
      found = fmt::format("the parameter {} is not finite", p.name);
  }
  runner_.repeat(local, update, [&](plan::Plan& plan, Range rows, bool first) {
    if (found.empty()) found = find_bad_input(plan, *local.batch, rows);
    NonFiniteFinder finder(plan, prepared_.heartbeat());
    plan.run({0, !first}, finder);
    if (found.empty() && rows.size() > 0 && !finder.where().empty()) found = kInNetwork + finder.where();
  });
  return found;
}

std::string StepInspection::find_spike(const LocalBatch& local, std::int64_t update, const std::string& parameter) {
  if (!prepared_.store().contains(parameter)) return "";  // the sparse tables
  const std::vector<std::string> names = neighbours(prepared_.store(), parameter);
  std::vector<double> mine(names.size()), all(names.size() * static_cast<std::size_t>(comm_.size()));
  BeatingHooks hooks(prepared_.heartbeat());
  comm::collectively(comm_, [&] {
    runner_.repeat(local, update, [&](plan::Plan& plan, Range, bool first) {
      plan.run({0, !first}, hooks);
      for (std::size_t n = 0; n < names.size(); ++n) {
        const Tensor gradient = prepared_.store().read_gradient(names[n]).to(DType::F64);
        mine[n] = 0;
        for (double g : gradient.data<double>()) mine[n] += g * g;
        prepared_.heartbeat().beat();
      }
    });
    prepared_.heartbeat().wait();
  });
  comm_.allgather(mine, all);
  prepared_.heartbeat().beat();
  const std::size_t largest = static_cast<std::size_t>(std::ranges::max_element(all) - all.begin());
  const std::size_t rank = largest / names.size(), name = largest % names.size();
  double others = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(comm_.size()); ++r) {
    if (r != rank) others = std::max(others, all[r * names.size() + name]);
  }
  return fmt::format(
      "; the largest part belongs to {} and comes from {}: its sum over samples has norm {:.4g}, on other ranks at "
      "most {:.4g}",
      names[name], name_of(comm_, static_cast<int>(rank)), std::sqrt(all[largest]), std::sqrt(others));
}

std::string StepInspection::compare_findings(const LocalBatch& local, std::int64_t update) {
  std::string text;
  const std::vector<std::string> found = comm_.allgather_strings(comm::collectively(comm_, [&] {
    std::string mine = find_nonfinite(local, update);
    prepared_.heartbeat().wait();
    return mine;
  }));
  prepared_.heartbeat().beat();
  for (int r = 0; r < comm_.size(); ++r) {
    if (!found[static_cast<std::size_t>(r)].empty())
      text += fmt::format("; {}: {}", name_of(comm_, r), found[static_cast<std::size_t>(r)]);
  }
  // If samples and parameters are finite on all ranks, the cause is neither a machine nor a file.
  const auto in_network = [](const std::string& f) { return f.empty() || f.starts_with(kInNetwork); };
  if (!text.empty() && std::ranges::all_of(found, in_network)) text += kDivergenceAdvice;
  return text;
}

}  // namespace lockstep::train
