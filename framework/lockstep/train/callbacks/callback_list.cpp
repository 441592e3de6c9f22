#include "lockstep/train/callbacks/callback_list.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/train/monitor/requests.h"

namespace lockstep::train {
namespace {

constexpr std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

void StepVote::add(std::size_t sum, double value) {
  check(sum < sums_.size(), "callback", "sum {}, expected less than the {} sums that the callback declared", sum,
        sums_.size());
  sums_[sum] += value;
}

void StepVote::say_yes(int question) {
  check(question >= 0 && question < votes_, "callback",
        "question {}, expected less than the {} votes that the callback declared", question, votes_);
  bits_ |= std::uint64_t{1} << (first_bit_ + question);
}

void CallbackList::add(Stage stage, std::unique_ptr<Callback> callback) {
  check(callback != nullptr, "callbacks", "the callback is null, expected an object");
  const CallbackNeeds& needs = callback->needs();
  check(needs.votes >= 0 && needs.votes <= kMostVotes - next_bit_, "callbacks",
        "a callback declares {} votes and those before it {}, expected at most {} together", needs.votes, next_bit_,
        kMostVotes);
  const auto after = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.stage > stage; });
  settled_weights_ = settled_weights_ || needs.settled_weights;
  const Entry entry{stage, nullptr, sums_, kFirstVote + next_bit_};
  sums_ += needs.sums;
  next_bit_ += needs.votes;
  entries_.insert(after, {entry.stage, std::move(callback), entry.first_sum, entry.first_bit});
}

std::uint64_t CallbackList::requests() const {
  std::uint64_t bits = 0;
  for (const Entry& entry : entries_) bits |= entry.callback->requests() & kRequestBits;
  return bits;
}

std::uint64_t CallbackList::vote(std::span<double> sums) const {
  std::uint64_t bits = 0;
  for (const Entry& entry : entries_) {
    const CallbackNeeds& needs = entry.callback->needs();
    StepVote vote(sums.subspan(entry.first_sum, needs.sums), bits, entry.first_bit, needs.votes);
    entry.callback->vote(vote);
  }
  return bits;
}

Orders CallbackList::after_step(StepEvent event, std::uint64_t bits, std::span<const double> sums) const {
  Orders orders;
  event.requests = bits & kRequestBits;
  for (const Entry& entry : entries_) {
    const CallbackNeeds& needs = entry.callback->needs();
    event.sums = sums.subspan(entry.first_sum, needs.sums);
    event.votes = needs.votes > 0 ? bits >> entry.first_bit & mask(needs.votes) : 0;
    entry.callback->after_step(event, orders);
  }
  return orders;
}

}  // namespace lockstep::train
