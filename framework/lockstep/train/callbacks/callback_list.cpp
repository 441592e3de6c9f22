#include "lockstep/train/callbacks/callback_list.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <typeinfo>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/train/monitor/requests.h"

namespace lockstep::train {
namespace {

constexpr std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

std::string type_of(const Callback& callback) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(callback).name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : typeid(callback).name();
}

std::string text_of(const CallbackNeeds& needs) {
  return formatted("{} sums, {} votes{}{}{}{}", needs.sums, needs.votes,
                   needs.changes_batches ? ", changes batches" : "", needs.settled_weights ? ", settled weights" : "",
                   needs.state.empty() ? "" : ", state ", needs.state);
}

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
  if (!needs.state.empty()) {
    check_state(*callback);
    ++states_;
  }
  const auto after = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.stage > stage; });
  settled_weights_ = settled_weights_ || needs.settled_weights;
  changes_batches_ = changes_batches_ || needs.changes_batches;
  const Entry entry{stage, nullptr, sums_, kFirstVote + next_bit_};
  sums_ += needs.sums;
  next_bit_ += needs.votes;
  entries_.insert(after, {entry.stage, std::move(callback), entry.first_sum, entry.first_bit});
}

// A checkpoint must be as easy to read as it was to write, so names keep to the limits of CallbackState.
void CallbackList::check_state(const Callback& callback) const {
  const std::string& name = callback.needs().state;
  check(name.size() <= CallbackState::kLongestName && is_utf8(name), "callbacks",
        "the state of {} has the name '{}', expected at most {} bytes of UTF-8", type_of(callback), printable(name),
        CallbackState::kLongestName);
  check(states_ < kMostCallbackStates, "callbacks", "the state '{}' is one more than the most, {}", name,
        kMostCallbackStates);
  for (const Entry& entry : entries_)
    check(entry.callback->needs().state != name, "callbacks",
          "two callbacks, {} and {}, have a state with the name '{}' in checkpoints, expected different names",
          type_of(*entry.callback), type_of(callback), name);
}

std::string CallbackList::description() const {
  std::string text;
  for (const Entry& entry : entries_)
    text += formatted("{}: {}\n", type_of(*entry.callback), text_of(entry.callback->needs()));
  return text;
}

CallbackStates CallbackList::save_states() const {
  CallbackStates states;
  for (const Entry& entry : entries_) {
    if (const std::string& name = entry.callback->needs().state; !name.empty())
      entry.callback->save_state(states[name]);
  }
  return states;
}

std::vector<std::string> CallbackList::load_states(const CallbackStates& saved) const {
  std::vector<std::string> notes;
  CallbackStates left = saved;
  for (const Entry& entry : entries_) {
    const std::string& name = entry.callback->needs().state;
    if (name.empty()) continue;
    const auto found = left.find(name);
    if (found == left.end()) {
      notes.push_back(formatted("the checkpoint has no state '{}' of a callback, which begins anew", name));
      continue;
    }
    try {
      entry.callback->load_state(found->second);
    } catch (const Error& error) {
      if (has_own_class(error)) throw;
      fail("resume", "the state '{}' of the callback {} cannot be used: {}", name, type_of(*entry.callback),
           error.what());
    }
    left.erase(found);
  }
  for (const auto& [name, state] : left)
    notes.push_back(
        formatted("the checkpoint has a state '{}' of a callback that this run does not have", printable(name)));
  return notes;
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
