#include "lockstep/parallel/exchange/slice_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::parallel {
namespace {

using Result = SliceWork::Result;

void* at(const void* base, comm::Element element, std::int64_t index) {
  return static_cast<std::byte*>(const_cast<void*>(base)) + index * comm::size_of(element);
}

std::size_t bytes_of(Range range, std::int64_t width) { return static_cast<std::size_t>(range.size() * width); }

}  // namespace

// Begins with the next domain, so that not all domains send to the first one at once.
template <class Each>
void SliceExchange::for_each_peer(const Each& each) const {
  for (int step = 1; step < domains_.count(); ++step) each((domains_.mine() + step) % domains_.count());
}

Range SliceExchange::part(int domain) const {
  return work_.parts[work_.result == Result::Replicated ? 0 : static_cast<std::size_t>(domain)];
}

void SliceExchange::start() {
  check(idle(), "slice exchange", "slice {} was started while another slice was in progress", work_.slice);
  for (const Range range : work_.parts) reduce_in_domain(range);
  if (domains_.count() > 1) phase_ = Phase::Reduced;
}

// Reduces to the open sums of this domain; with a single domain this is the root, which is written to the outs.
void SliceExchange::reduce_in_domain(Range range) {
  const bool root = domains_.count() == 1;
  open_.clear();
  for (std::size_t i = 0; i < tree_.sums.size(); ++i) {
    const DomainTree::Sum& sum = tree_.sums[i];
    const void* first = work_.operands[static_cast<std::size_t>(sum.operands[0])];
    const bool in_place = work_.open.empty() || sum.merges.empty();
    open_.push_back(in_place ? first : work_.open[i]);
    outs_.clear();
    if (root) {
      for (void* out : work_.outs) outs_.push_back(at(out, work_.element, range.begin - work_.out_begin));
    } else if (!sum.merges.empty()) {
      outs_.push_back(at(open_.back(), work_.element, range.begin));
    }
    if (outs_.empty() || range.size() == 0) continue;
    operands_.clear();
    for (const int o : sum.operands)
      operands_.push_back(at(work_.operands[static_cast<std::size_t>(o)], work_.element, range.begin));
    tree_reduce({.element = work_.element,
                 .op = work_.op,
                 .merges = sum.merges,
                 .threads = work_.threads,
                 .wire = work_.wire,
                 .root = root},
                operands_, range.size(), outs_);
  }
}

bool SliceExchange::advance() {
  if (phase_ == Phase::Idle) return false;
  if (phase_ == Phase::Reduced) {
    exchange();
    return true;
  }
  if (!transport_.all_done(handles_)) return false;
  if (phase_ == Phase::Exchange) {
    reduce_parts();
    if (work_.result == Result::Gathered) {
      gather();
      return true;
    }
  } else {
    widen_arrivals();
  }
  finish();
  return true;
}

// Sends each other driver its part of this domain's open sums, and receives this driver's part of the open sums of that
// domain.
void SliceExchange::exchange() {
  phase_ = Phase::Exchange;
  if (const std::size_t bytes = scratch_bytes(work_); bytes > scratch_.capacity)
    // The transport keeps the old memory. As sizes double, all old memory together is no more than the new.
    reserve(std::max(2 * scratch_.capacity, bytes));
  scratch_.used = 0;
  incoming_.clear();
  operands_.clear();
  const Range mine = part(domains_.mine());
  for (const DomainTree::Open& open : tree_.order) {
    if (open.domain == domains_.mine()) {
      operands_.push_back(at(open_[static_cast<std::size_t>(open.index)], work_.element, mine.begin));
    } else {
      operands_.push_back(take(bytes_of(mine, size_of(work_.element))));
      receive(open.domain, mine, const_cast<void*>(operands_.back()));
    }
  }
  for_each_peer([&](int domain) {
    for (const void* open : open_) send(domain, message_of(open, part(domain)));
  });
}

void SliceExchange::reduce_parts() {
  widen_arrivals();
  const Range mine = part(domains_.mine());
  if (mine.size() == 0) return;
  outs_.assign(1, at(work_.outs[0], work_.element, mine.begin - work_.out_begin));
  tree_reduce(
      {.element = work_.element, .op = work_.op, .merges = tree_.to_root, .threads = work_.threads, .wire = work_.wire},
      operands_, mine.size(), outs_);
}

// Sends this driver's part of the root to the other drivers and receives their parts.
void SliceExchange::gather() {
  phase_ = Phase::Gather;
  for (int domain = 0; domain < domains_.count(); ++domain) {
    if (domain != domains_.mine())
      receive(domain, part(domain), at(work_.outs[0], work_.element, part(domain).begin - work_.out_begin));
  }
  const void* sums = at(work_.outs[0], work_.element, -work_.out_begin);
  const comm::ConstBuffer root = message_of(sums, part(domains_.mine()));
  for_each_peer([&](int domain) { send(domain, root); });
}

void SliceExchange::finish() {
  phase_ = Phase::Idle;
  for (std::size_t i = 1; i < work_.outs.size(); ++i) {
    for (int domain = 0; domain < domains_.count(); ++domain) {
      if (work_.result != Result::Gathered && domain != domains_.mine()) continue;
      const Range range = part(domain);
      if (range.size() == 0) continue;
      const std::int64_t begin = range.begin - work_.out_begin;
      std::memcpy(at(work_.outs[i], work_.element, begin), at(work_.outs[0], work_.element, begin),
                  bytes_of(range, size_of(work_.element)));
    }
  }
}

void SliceExchange::receive(int domain, Range range, void* values) {
  if (range.size() == 0) return;
  auto* message = narrow() ? take(bytes_of(range, 2)) : static_cast<std::byte*>(values);
  incoming_.push_back({domain, range, message, values});
  const comm::Buffer buffer = narrow() ? comm::Buffer(message, 2 * range.size(), comm::Element::U8)
                                       : comm::Buffer(message, range.size(), work_.element);
  handles_.push_back(transport_.receive(buffer, domains_.driver(domain, work_.slice), work_.tag));
}

void SliceExchange::send(int domain, comm::ConstBuffer message) {
  if (message.count == 0) return;
  sent_ += message.bytes();
  handles_.push_back(transport_.send(message, domains_.driver(domain, work_.slice), work_.tag));
}

// The elements themselves, or for a narrow wire the rounded elements in scratch memory.
comm::ConstBuffer SliceExchange::message_of(const void* base, Range range) {
  const void* values = at(base, work_.element, range.begin);
  if (!narrow()) return {values, range.size(), work_.element};
  auto* words = reinterpret_cast<std::uint16_t*>(take(bytes_of(range, 2)));
  parallel::narrow(range.size(), static_cast<const float*>(values), work_.wire, words);
  return {words, 2 * range.size(), comm::Element::U8};
}

void SliceExchange::widen_arrivals() {
  for (const Incoming& in : incoming_) {
    if (narrow())
      widen(in.range.size(), reinterpret_cast<const std::uint16_t*>(in.message), work_.wire,
            static_cast<float*>(in.values));
  }
  incoming_.clear();
}

std::byte* SliceExchange::take(std::size_t bytes) {
  return scratch_.memory.get() + std::exchange(scratch_.used, scratch_.used + whole_lines(bytes));
}

// The scratch memory for exchange() and gather().
std::size_t SliceExchange::scratch_bytes(const SliceWork& work) const {
  const bool replicated = work.result == Result::Replicated;
  const std::size_t mine = bytes_of(work.parts[replicated ? 0 : static_cast<std::size_t>(domains_.mine())], 1);
  const std::size_t own = tree_.sums.size(), others = tree_.order.size() - own;
  const std::size_t operands = others * whole_lines(mine * static_cast<std::size_t>(comm::size_of(work.element)));
  if (work.wire == Wire::Exact) return operands;
  std::size_t messages = others * whole_lines(2 * mine);
  for (int domain = 0; domain < domains_.count(); ++domain) {
    // Sent: each open sum's part of each domain, and this domain's part of the root. Received: the other domains'
    // parts.
    const Range range = work.parts[replicated ? 0 : static_cast<std::size_t>(domain)];
    messages += (own + 1) * whole_lines(bytes_of(range, 2));
  }
  return operands + messages;
}

void SliceExchange::reserve(std::size_t bytes) {
  if (bytes <= scratch_.capacity) return;
  scratch_.memory = allocate_aligned(bytes);
  scratch_.capacity = bytes;
  transport_.keep(scratch_.memory);
}

}  // namespace lockstep::parallel
