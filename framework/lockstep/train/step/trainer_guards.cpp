// What a Trainer does when a step was held back: finds out whose memory, samples or arithmetic it was, says so, and
// repairs, skips, goes back or stops. All ranks do it together, as all know the verdict.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/core/finite.h"
#include "lockstep/core/log.h"
#include "lockstep/train/step/nonfinite.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {
namespace {

constexpr int kAttempts = 3;               // at a step whose memory is found damaged
constexpr int kRollBacks = 3;              // without coming any further
constexpr std::int64_t kSkipsInARow = 10;  // then it is no accident
constexpr int kSuspicions = 2;             // then a rank has to compute the known product

constexpr std::string_view kAdvice =
    "; training may have diverged: a lower learning rate (--lr) or clipping the gradient (--clip-norm) helps";
const std::string kInNetwork = "first in ";  // how a finding begins that is neither of samples nor of parameters

// Those that lie in the same blocks of memory: the guard sees them together.
std::vector<std::string> neighbours(const ParameterStore& store, const std::string& name) {
  constexpr std::int64_t kBlock = BucketReducer::kBlock;
  const Bucket& bucket = store.buckets()[static_cast<std::size_t>(store.bucket_of(store.find(name)))];
  const BucketEntry& own = *std::ranges::find(bucket.entries, name, &BucketEntry::name);
  const std::int64_t begin = own.offset / kBlock, end = (own.offset + own.elements + kBlock - 1) / kBlock;
  std::vector<std::string> names;
  for (const BucketEntry& e : bucket.entries) {
    if (e.offset < end * kBlock && e.offset + e.elements > begin * kBlock) names.push_back(e.name);
  }
  return names;
}

}  // namespace

EngineGuards GuardOptions::engine() const {
  const bool limits = gradient.norm > 0 || gradient.spike > 0;
  return {.verify_every = verify_every,
          .compare_every = compare_every,
          .hold_loss = action != GuardAction::Log,
          .hold_gradient = action == GuardAction::Skip || (action == GuardAction::Stop && limits),
          .gradient = gradient};
}

std::string Trainer::who(int rank) const { return fmt::format("rank {} on {}", rank, comm_.topology().host(rank)); }

bool Trainer::run_again(const Local& local, int attempts) {
  outcome_ = StepOutcome::Applied;
  switch (engine_->verdict()) {
    case StepVerdict::Apply:
      skipped_in_a_row_ = 0;
      tell_findings();
      return false;
    case StepVerdict::Damaged:
      return recover(attempts);
    case StepVerdict::BadLoss:
    case StepVerdict::BadGradient:
      return refuse(local, attempts);
  }
  return false;
}

// --- memory

// Examines, repairs if that is asked for and possible, and adds to `text` what was found.
bool Trainer::is_repaired(std::string& text) {
  const bool wanted = options_.guards.on_mismatch == OnMismatch::Repair;
  const std::vector<MemoryDamage> damages = engine_->examine(wanted);
  bool repairable = true;
  for (const MemoryDamage& d : damages) {
    text += fmt::format("{}{}: {} is not what was written there", text.empty() ? "" : "; ", who(d.rank), d.what);
    if (d.source >= 0) text += fmt::format(" ({} has it right)", who(d.source));
    repairable = repairable && d.source >= 0;
  }
  if (damages.empty()) text = "a hash of parameters did not fit, and now all do";
  if (comm_.is_root()) log()->error("memory: after update {}: {}", updates_, text);
  for (const MemoryDamage& d : damages) suspect(d.rank, 1);
  return wanted && repairable;
}

// Whether the step is to be run again.
bool Trainer::recover(int attempts) {
  std::string text;
  const bool repaired = is_repaired(text);
  if (repaired && attempts < kAttempts) {
    if (comm_.is_root()) log()->warn("memory: repaired from a copy; update {} is done again", updates_ + 1);
    return true;
  }
  roll_back_or_throw(std::move(text));
  outcome_ = StepOutcome::RolledBack;
  return false;
}

void Trainer::roll_back_or_throw(std::string text) {
  if (updates_ > furthest_) rolled_back_ = 0;
  furthest_ = std::max(furthest_, updates_);
  if (++rolled_back_ > kRollBacks) text += fmt::format("; rolled back {} times without coming further", kRollBacks);
  const bool goes_back = options_.guards.on_mismatch != OnMismatch::Stop && rolled_back_ <= kRollBacks;
  if (!goes_back || !roll_back_ || !roll_back_())
    throw UntrustedError(fmt::format("[memory] after update {}: {}", updates_, text));
  if (comm_.is_root()) log()->warn("memory: rolled back to update {}", updates_);
}

bool Trainer::verify() {
  if (engine_->intact()) return true;
  std::string text;
  if (is_repaired(text)) {
    if (comm_.is_root()) log()->warn("memory: repaired from a copy");
    return true;
  }
  roll_back_or_throw(std::move(text));
  return false;
}

void Trainer::require_intact() {
  if (engine_->intact()) return;
  std::string text;
  if (!is_repaired(text)) throw UntrustedError(fmt::format("[memory] after update {}: {}", updates_, text));
}

// --- losses and gradients

// Runs this rank's part of the step once more, its gradient in slot 0: visit(plan, rows, first).
template <class Visit>
void Trainer::repeat(const Local& local, const Visit& visit) {
  engine_->fence();  // nobody reads this rank's gradients any more
  bool first = true;
  const Range mine = world_.my_leaves();
  for (std::int64_t number = mine.begin; number < mine.end; ++number) {
    const Range leaf = rows_of(local, number);
    for (std::int64_t micro = 0; micro < options_.accumulate; ++micro) {
      if (!is_run(leaf, micro)) continue;
      const Range part = part_of(leaf.size(), options_.accumulate, micro);
      const Range rows{leaf.begin + part.begin - local.first, leaf.begin + part.end - local.first};
      visit(fill(Mode::Train, *local.batch, rows, static_cast<std::uint64_t>(updates_)), rows,
            std::exchange(first, false));
    }
  }
}

std::string Trainer::find_bad_input(Plan& plan, const data::Batch& batch, Range rows) const {
  for (const data::Field& f : fields_) {
    const void* input = plan.input(f.name);
    const std::int64_t each = f.shape.elements();
    const std::int64_t at = first_nonfinite(input, f.dtype, each * rows.size());
    if (at < 0) continue;
    const auto row = static_cast<std::size_t>(rows.begin + at / each);
    const auto& ids = batch.step.samples;
    return row < ids.size() ? fmt::format("'{}' of sample {} is not finite", f.name, ids[row])
                            : fmt::format("'{}' of its sample {} is not finite", f.name, row);
  }
  return "";
}

std::string Trainer::find_nonfinite(const Local& local) {
  std::string found;
  for (const NamedParameter& p : model_.parameters().parameters()) {
    const Tensor value = model_.parameters().read(p.name);
    if (found.empty() && first_nonfinite(value.raw(), value.dtype(), value.elements()) >= 0)
      found = fmt::format("the parameter {} is not finite", p.name);
  }
  repeat(local, [&](Plan& plan, Range rows, bool first) {
    if (found.empty()) found = find_bad_input(plan, *local.batch, rows);
    NonFiniteFinder finder(plan);
    plan.run({0, !first}, finder);
    if (found.empty() && rows.size() > 0 && !finder.where().empty()) found = kInNetwork + finder.where();
  });
  return found;
}

// Whose samples bring most of what was found in the blocks of a parameter, and in which of those that lie there.
std::string Trainer::find_spike(const Local& local, const std::string& parameter) {
  const std::vector<std::string> names = neighbours(model_.parameters(), parameter);
  std::vector<double> mine(names.size()), all(names.size() * static_cast<std::size_t>(world_.size));
  comm::collectively(comm_, [&] {
    repeat(local, [&](Plan& plan, Range, bool first) {
      plan.run({0, !first});
      for (std::size_t n = 0; n < names.size(); ++n) {
        const Tensor gradient = model_.parameters().read_gradient(names[n]).to(DType::F64);
        mine[n] = 0;
        for (double g : gradient.data<double>()) mine[n] += g * g;
      }
    });
  });
  comm_.allgather(mine, all);
  const std::size_t largest = static_cast<std::size_t>(std::ranges::max_element(all) - all.begin());
  const std::size_t rank = largest / names.size(), name = largest % names.size();
  double others = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(world_.size); ++r) {
    if (r != rank) others = std::max(others, all[r * names.size() + name]);
  }
  return fmt::format(
      "; most of it is of {} and from {}: its sum over samples has norm {:.4g}, at most {:.4g} elsewhere", names[name],
      who(static_cast<int>(rank)), std::sqrt(all[largest]), std::sqrt(others));
}

// What each rank finds when it computes its part again, in one line; empty if all of it is finite now.
std::string Trainer::compare_findings(const Local& local) {
  std::string text;
  const std::vector<std::string> found =
      comm_.allgather_strings(comm::collectively(comm_, [&] { return find_nonfinite(local); }));
  for (int r = 0; r < world_.size; ++r) {
    if (!found[static_cast<std::size_t>(r)].empty())
      text += fmt::format("; {}: {}", who(r), found[static_cast<std::size_t>(r)]);
  }
  // With good samples and finite parameters on all ranks, no machine and no file is to blame.
  if (std::ranges::all_of(found, [](const std::string& f) { return f.starts_with(kInNetwork); })) text += kAdvice;
  return text;
}

// Whether the step is to be run again.
bool Trainer::refuse(const Local& local, int attempts) {
  const bool of_loss = engine_->verdict() == StepVerdict::BadLoss;
  const GradientFinding finding = engine_->gradient_finding();
  const double loss = engine_->sums()[kLossSum];
  std::string text =
      of_loss ? (std::isnan(loss) ? "the loss is nan" : fmt::format("the loss is {}", loss)) : finding.str();
  if (of_loss || !finding.finite) {
    std::vector<int> guilty;
    for (int r = 0; r < world_.size; ++r) {
      if (!std::isfinite(engine_->loss_of(r))) guilty.push_back(r);
    }
    const std::string found = compare_findings(local);
    if (found.empty() && attempts == 0) {
      if (comm_.is_root())
        log()->error("guard: update {}: {}; computed again, all is finite: it is done again", updates_ + 1, text);
      for (int rank : guilty) suspect(rank, kSuspicions);
      return true;
    }
    text += found;
  } else {
    text += find_spike(local, finding.parameter);
    text += kAdvice;
  }
  if (options_.guards.action != GuardAction::Skip)
    throw UntrustedError(fmt::format("[guard] update {}: {}", updates_ + 1, text));
  ++skipped_;
  if (++skipped_in_a_row_ > kSkipsInARow)
    throw UntrustedError(
        fmt::format("[guard] update {}: {}; {} updates before it were skipped", updates_ + 1, text, kSkipsInARow));
  if (comm_.is_root())
    log()->warn("guard: update {} is skipped, number {} of this run: {}", updates_ + 1, skipped_, text);
  outcome_ = StepOutcome::Skipped;
  return false;
}

// Of a step that was applied; ever more rarely, as what is worth a warning may go on for long.
void Trainer::tell_findings() {
  const double loss = engine_->sums()[kLossSum];
  const GradientFinding& finding = engine_->gradient_finding();
  const bool bad_loss = engine_->sums()[kSampleSum] > 0 && !std::isfinite(loss);
  if (!bad_loss && finding.level == GradientFinding::Level::Fine) return;
  if (!std::has_single_bit(static_cast<std::uint64_t>(++findings_)) || !comm_.is_root()) return;
  std::string ranks;
  for (int r = 0; bad_loss && r < world_.size; ++r) {
    if (!std::isfinite(engine_->loss_of(r))) ranks += fmt::format("{}{}", ranks.empty() ? " of " : ", ", who(r));
  }
  log()->warn("guard: update {}: {} (warning {}){}", updates_ + 1,
              bad_loss ? fmt::format("the loss{} is not finite", ranks) : finding.str(), findings_,
              finding.level == GradientFinding::Level::Warn && !bad_loss ? "" : kAdvice);
}

// --- ranks that compute wrongly

void Trainer::suspect(int rank, int times) {
  suspicions_.resize(static_cast<std::size_t>(world_.size));
  if ((suspicions_[static_cast<std::size_t>(rank)] += times) < kSuspicions) return;
  const KnownProduct mine = known_product();
  std::vector<std::uint64_t> answers = comm_.allgather(mine.computed), votes = comm_.allgather(mine.expected);
  votes.insert(votes.end(), answers.begin(), answers.end());
  const std::uint64_t right =
      *std::ranges::max_element(votes, {}, [&](std::uint64_t v) { return std::ranges::count(votes, v); });
  std::string wrong;
  for (int r = 0; r < world_.size; ++r) {
    const std::uint64_t answer = answers[static_cast<std::size_t>(r)];
    if (answer != right)
      wrong += fmt::format("{}{} computes wrongly: the known product is {:016x} there, expected {:016x}",
                           wrong.empty() ? "" : "; ", who(r), answer, right);
  }
  if (!wrong.empty()) throw UntrustedError(fmt::format("[product] {}", wrong));
  if (comm_.is_root())
    log()->warn("product: {} is suspected again, but gets the known product right, as all ranks do", who(rank));
}

void Trainer::damage_input(Plan& plan) const {
  const auto damage = [&](auto change) {
    for (const data::Field& f : fields_) {
      void* input = plan.input(f.name);
      if (input == nullptr || !is_floating(f.dtype)) continue;
      for (std::int64_t i = 0; i < f.shape.elements(); ++i) {
        if (f.dtype == DType::F64) change(static_cast<double*>(input)[i]);
        if (f.dtype == DType::F32) change(static_cast<float*>(input)[i]);
      }
    }
  };
  if (fault_wanted("batch.nan", updates_ + 1)) {
    damage([]<class T>(T& v) { v = std::numeric_limits<T>::quiet_NaN(); });
  } else if (fault_wanted("gradient.spike", updates_ + 1)) {
    damage([]<class T>(T& v) { v *= 1000; });
  }
}

}  // namespace lockstep::train
