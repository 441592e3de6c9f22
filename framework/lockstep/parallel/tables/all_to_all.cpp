#include "lockstep/parallel/tables/all_to_all.h"

#include "lockstep/core/backoff.h"

namespace lockstep::parallel {
namespace {

constexpr int kLengthTag = 0, kWordTag = 1;

}  // namespace

AllToAll::AllToAll(const comm::Communicator& comm) : comm_(comm), memory_(std::make_shared<Memory>()) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  memory_->outgoing.resize(ranks);
  memory_->incoming.resize(ranks);
  memory_->sent.resize(ranks);
  memory_->received.resize(ranks);
}

void AllToAll::clear() {
  for (Words& words : memory_->outgoing) words.clear();
}

void AllToAll::start() {
  requests_.clear();
  for (int step = 1; step < comm_.size(); ++step) {
    const int to = (comm_.rank() + step) % comm_.size(), from = (comm_.rank() + comm_.size() - step) % comm_.size();
    std::int64_t& length = memory_->sent[static_cast<std::size_t>(to)];
    length = static_cast<std::int64_t>(outgoing(to).size());
    std::int64_t& answer = memory_->received[static_cast<std::size_t>(from)];
    requests_.push_back(comm_.irecv(comm::Buffer(&answer, 1, comm::Element::I64), from, kLengthTag, memory_));
    requests_.push_back(comm_.isend(comm::ConstBuffer(&length, 1, comm::Element::I64), to, kLengthTag, memory_));
  }
  phase_ = Phase::Lengths;
}

void AllToAll::start(std::span<const std::int64_t> lengths) {
  requests_.clear();
  memory_->received.assign(lengths.begin(), lengths.end());
  start_words();
}

void AllToAll::start_words() {
  for (int step = 1; step < comm_.size(); ++step) {
    const int to = (comm_.rank() + step) % comm_.size(), from = (comm_.rank() + comm_.size() - step) % comm_.size();
    Words& words = memory_->incoming[static_cast<std::size_t>(from)];
    words.resize(static_cast<std::size_t>(memory_->received[static_cast<std::size_t>(from)]));
    if (!words.empty()) requests_.push_back(comm_.irecv(comm::Buffer(words), from, kWordTag, memory_));
    if (!outgoing(to).empty()) requests_.push_back(comm_.isend(comm::ConstBuffer(outgoing(to)), to, kWordTag, memory_));
  }
  phase_ = Phase::Words;
}

bool AllToAll::advance() {
  if (phase_ == Phase::Done || !comm::test_all(requests_)) return false;
  requests_.clear();
  if (phase_ == Phase::Lengths) {
    start_words();
  } else {
    phase_ = Phase::Done;
  }
  return true;
}

void complete(AllToAll& messages, const std::function<void()>& waiting) {
  for (Backoff pause; !messages.done();) {
    if (messages.advance()) continue;
    waiting();
    pause.pause();
  }
}

}  // namespace lockstep::parallel
