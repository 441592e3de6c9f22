// The part of BucketReducer that is between domains: a piece's way through a lane.
#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/parallel/reduce/bucket_reducer.h"

namespace lockstep {

std::byte* BucketReducer::Lane::take(std::size_t bytes) { return std::exchange(next, next + whole_lines(bytes)); }

// What exchange(), sum_parts() and gather() take.
std::size_t BucketReducer::lane_bytes(const Piece& piece) const {
  const Bucket& b = at(piece.bucket);
  std::size_t whole = 0;
  for (int d = 0; d < domains_.count(); ++d) whole += static_cast<std::size_t>(part(piece, d).size());
  const auto mine = static_cast<std::size_t>(part(piece, domains_.mine()).size());
  const std::size_t own = tree_.sums.size(), others = tree_.order.size() - own;
  if (!narrow(b)) return others * whole_lines(mine * size_of(b.memory.dtype));
  const std::size_t parts = 2 * static_cast<std::size_t>(domains_.count());
  return others * (whole_lines(2 * mine) + whole_lines(4 * mine)) + (own + 1) * (2 * whole + parts * kAlignment);
}

// To the driver in each other domain its part of this domain's open sums; from it, my part of its own.
void BucketReducer::exchange(Lane& lane) {
  const Piece& piece = *lane.piece;
  const Bucket& b = at(piece.bucket);
  const Range mine = part(piece, domains_.mine());
  lane.since = Trace::Clock::now();
  if (!lane.memory) {
    lane.memory = allocate_aligned(lane_bytes_);
    transport_.keep(lane.memory);
  }
  lane.next = lane.memory.get();
  lane.phase = Phase::Exchange;
  lane.messages.clear();
  lane.operands.clear();
  const auto open_sum = [&](int i) { return operand(b, tree_.sums[static_cast<std::size_t>(i)].operands[0]); };
  for (const DomainTree::Open& open : tree_.order) {
    if (open.domain == domains_.mine()) {
      lane.messages.push_back(nullptr);
      lane.operands.push_back(element(open_sum(open.index), b.memory.dtype, mine.begin));
      continue;
    }
    const auto count = static_cast<std::size_t>(mine.size());
    lane.messages.push_back(lane.take(count * (narrow(b) ? 2 : size_of(b.memory.dtype))));
    lane.operands.push_back(narrow(b) ? lane.take(count * sizeof(float)) : lane.messages.back());
    receive(lane, lane.messages.back(), mine.size(), open.domain);
  }
  for (int step = 1; step < domains_.count(); ++step) {  // from the next one on, so that not all send to the first
    const int domain = (domains_.mine() + step) % domains_.count();
    const Range theirs = part(piece, domain);
    for (int i = 0; std::cmp_less(i, tree_.sums.size()); ++i) {
      send(lane, message(lane, element(open_sum(i), b.memory.dtype, theirs.begin), theirs.size()), domain);
    }
  }
}

// What is sent for `count` elements: themselves, or in the lane's memory what they are rounded to.
comm::ConstBuffer BucketReducer::message(Lane& lane, const void* data, std::int64_t count) {
  const Bucket& b = at(lane.piece->bucket);
  if (!narrow(b)) return {data, count, b.memory.dtype == DType::F64 ? comm::Element::F64 : comm::Element::F32};
  auto* words = reinterpret_cast<std::uint16_t*>(lane.take(static_cast<std::size_t>(count) * 2));
  lockstep::narrow(count, static_cast<const float*>(data), options_.wire, words);
  return {words, 2 * count, comm::Element::U8};
}

void BucketReducer::send(Lane& lane, comm::ConstBuffer message, int domain) {
  sent_ += message.bytes();
  lane.handles.push_back(transport_.send(message, domains_.driver(domain, lane.piece->slice_number), lane.piece->tag));
}

void BucketReducer::receive(Lane& lane, void* data, std::int64_t count, int domain) {
  const Bucket& b = at(lane.piece->bucket);
  comm::Buffer message{data, count, b.memory.dtype == DType::F64 ? comm::Element::F64 : comm::Element::F32};
  if (narrow(b)) message = {data, 2 * count, comm::Element::U8};
  lane.handles.push_back(
      transport_.receive(message, domains_.driver(domain, lane.piece->slice_number), lane.piece->tag));
}

void BucketReducer::sum_parts(Lane& lane) {
  const Bucket& b = at(lane.piece->bucket);
  const Range mine = part(*lane.piece, domains_.mine());
  for (std::size_t i = 0; narrow(b) && i < lane.messages.size(); ++i) {
    if (lane.messages[i] == nullptr) continue;
    widen(mine.size(), static_cast<const std::uint16_t*>(lane.messages[i]), options_.wire,
          static_cast<float*>(lane.operands[i]));
  }
  if (mine.size() == 0) return;
  operands_.assign(lane.operands.begin(), lane.operands.end());
  b.memory.dtype == DType::F64 ? sum<double>(b, tree_.to_root, mine, true) : sum<float>(b, tree_.to_root, mine, true);
}

// My part's sum to the other domains' drivers, theirs to me.
void BucketReducer::gather(Lane& lane) {
  const Piece& piece = *lane.piece;
  const Bucket& b = at(piece.bucket);
  lane.phase = Phase::Gather;
  lane.since = Trace::Clock::now();
  lane.gathered.clear();
  void* sums = b.memory.slots[static_cast<std::size_t>(domains_.local_rank())][0];
  for (int domain = 0; domain < domains_.count(); ++domain) {
    lane.gathered.push_back(nullptr);
    if (domain == domains_.mine()) continue;
    const Range theirs = part(piece, domain);
    void* into = element(sums, b.memory.dtype, theirs.begin);
    if (narrow(b)) into = lane.take(static_cast<std::size_t>(theirs.size()) * 2);
    lane.gathered.back() = into;
    receive(lane, into, theirs.size(), domain);
  }
  const Range mine = part(piece, domains_.mine());
  const comm::ConstBuffer sum = message(lane, element(sums, b.memory.dtype, mine.begin), mine.size());
  for (int step = 1; step < domains_.count(); ++step) send(lane, sum, (domains_.mine() + step) % domains_.count());
}

void BucketReducer::finish_gather(Lane& lane) {
  const Piece& piece = *lane.piece;
  const Bucket& b = at(piece.bucket);
  void* sums = b.memory.slots[static_cast<std::size_t>(domains_.local_rank())][0];
  for (int domain = 0; narrow(b) && domain < domains_.count(); ++domain) {
    if (domain == domains_.mine()) continue;
    const Range theirs = part(piece, domain);
    widen(theirs.size(), static_cast<const std::uint16_t*>(lane.gathered[static_cast<std::size_t>(domain)]),
          options_.wire, static_cast<float*>(element(sums, b.memory.dtype, theirs.begin)));
  }
  for (int l = 0; b.memory.everywhere && l < domains_.local_size(); ++l) {
    if (l == domains_.local_rank()) continue;
    void* theirs = b.memory.slots[static_cast<std::size_t>(l)][0];
    for (int domain = 0; domain < domains_.count(); ++domain) {
      const Range range = part(piece, domain);
      std::memcpy(element(theirs, b.memory.dtype, range.begin), element(sums, b.memory.dtype, range.begin),
                  static_cast<std::size_t>(range.size()) * size_of(b.memory.dtype));
    }
  }
}

}  // namespace lockstep
