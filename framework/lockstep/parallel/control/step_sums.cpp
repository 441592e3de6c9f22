#include "lockstep/parallel/control/step_sums.h"

#include <algorithm>
#include <string>

#include "lockstep/core/error.h"

namespace lockstep::parallel {
namespace {

std::string position_text(std::uint64_t word) {
  return formatted("sample {} of epoch {}", word & (position_word(1, 0) - 1), (word >> 40) + 1);
}

std::string rate_text(std::uint64_t word) { return formatted("{}", std::bit_cast<double>(word)); }

}  // namespace

StepSums::StepSums(Transport& transport, SharedFlags& flags, std::span<std::byte> blocks, const Domains& domains,
                   const WorldLayout& world, std::size_t others, const BetweenSteps& between)
    : ranks_(world.size), between_(between), control_(transport, flags, blocks, domains, world, size(others)) {}

void StepSums::begin(const StepStart& start) {
  const std::span<std::uint64_t> words = control_.words();
  words[kStepWord] = static_cast<std::uint64_t>(start.update);
  words[kSamplesWord] = start.samples;
  words[kPositionWord] = start.position;
  words[kRateWord] = std::bit_cast<std::uint64_t>(start.learning_rate);
  words[kDriverWord] = start.driver;
  words[kRequestWord] = start.requests;
  words[kBetweenWord] = 0;
  control_.begin();
  local_weight_ = local_loss_ = 0;
}

void StepSums::count_shard() {
  local_weight_ += control_.shard()[kWeightSum];
  local_loss_ += control_.shard()[kLossSum];
}

void StepSums::tell(const MemoryWords& memory) {
  const std::span<std::uint64_t> words = control_.words();
  words[kDamageWord] = memory.damage;
  words[kDigestWord] = memory.digest;
  words[kOwnWord] = memory.own;
}

void StepSums::end_shard(double seconds) {
  control_.words()[kTimeWord] = static_cast<std::uint64_t>(1e9 * seconds);
  control_.words()[kLossWord] = std::bit_cast<std::uint64_t>(local_loss_);
  control_.end_shard();
}

void StepSums::add_up() {
  control_.total();
  check_between();
  control_.check_same(kStepWord, "the number of the step");
  control_.check_same(kSamplesWord, "the number of samples in the step");
  control_.check_same(kPositionWord, "the position in the data set", position_text);
  control_.check_same(kRateWord, "the learning rate", rate_text);
  const double samples = sums()[kSampleSum], weight = sums()[kWeightSum];
  check(samples == 0 || weight > 0, "step", "update {}: the weights of {} samples add up to {}",
        control_.word(0, kStepWord), samples, weight);
}

void StepSums::post(std::uint64_t word) {
  control_.words()[kBetweenWord] = word;
  control_.post();
}

void StepSums::check_between() const {
  control_.check_same(kBetweenWord, between_.meaning, between_.text, between_.advice);
}

StepSums::Slowest StepSums::slowest() const {
  Slowest slowest;
  std::uint64_t least = control_.word(0, kTimeWord), most = least;
  for (int r = 1; r < ranks_; ++r) {
    const std::uint64_t time = control_.word(r, kTimeWord);
    least = std::min(least, time);
    if (time > most) {
      most = time;
      slowest.rank = r;
    }
  }
  slowest.lead = 1e-9 * static_cast<double>(most - least);
  return slowest;
}

}  // namespace lockstep::parallel
