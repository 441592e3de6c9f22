#include "lockstep/parallel/reduce/bucket_reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

std::int64_t nanoseconds_since(Trace::Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Trace::Clock::now() - begin).count();
}

Range part_in_blocks(Range range, std::int64_t parts, std::int64_t index) {
  return lockstep::part_in_blocks(range, parts, index, BucketReducer::kBlock);
}

void append(std::vector<Range>& ranges, Range range) {
  if (range.size() == 0) return;
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

// The sum of squares of a block in an order of its own: the same whoever computes it, with vectors of any width.
template <class T>
double sum_of_squares(const T* values, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const auto v = static_cast<double>(values[i + l]);
      lanes[static_cast<std::size_t>(l)] += v * v;
    }
  }
  for (; i < n; ++i)
    lanes[static_cast<std::size_t>(i % kLanes)] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

BucketReducer::BucketReducer(Transport& transport, SharedFlags& flags, const Domains& domains, const WorldLayout& world,
                             const ReducerOptions& options)
    : transport_(transport),
      flags_(flags),
      domains_(domains),
      tree_(world, domains),
      options_(options),
      threads_(options.threads) {}

bool BucketReducer::narrow(const Bucket& b) const {
  return options_.wire != Wire::Exact && b.memory.dtype == DType::F32;
}

Range BucketReducer::part(const Piece& piece, int domain) const {
  return part_in_blocks(part_in_blocks(piece.slice, domains_.count(), domain), piece.count, piece.index);
}

int BucketReducer::add_bucket(BucketMemory memory) {
  const int number = static_cast<int>(buckets_.size());
  check(memory.dtype == DType::F32 || memory.dtype == DType::F64, "reduction", "bucket {} is {}, expected f32 or f64",
        number, name_of(memory.dtype));
  for (const DomainTree::Operand& o : tree_.operands) {
    const auto& slots = memory.slots.at(static_cast<std::size_t>(o.local_rank));
    check(std::cmp_less(o.slot, slots.size()), "reduction", "bucket {} has {} slots of local rank {}, expected {}",
          number, slots.size(), o.local_rank, o.slot + 1);
  }
  Bucket& b = buckets_.emplace_back();
  b.number = number;
  b.memory = std::move(memory);
  make_pieces(b);
  b.owned = b.memory.hooked >= 0 ? std::vector<Range>{{0, b.memory.elements}} : owned_by(number, domains_.rank);
  unfinished_ = number + 1;
  b.left = b.pieces.size();
  return number;
}

void BucketReducer::make_pieces(Bucket& b) {
  if (b.memory.hooked >= 0) {
    check(options_.hook != nullptr && domains_.local_size() == 1 && b.memory.values == nullptr, "reduction",
          "bucket {} is a hook's, which needs a hook and ranks that are domains of their own", b.number);
    b.pieces = {std::ssize(pieces_), std::ssize(pieces_)};
    return;
  }
  const auto chunk =
      std::max<std::int64_t>(1, options_.piece_bytes / static_cast<std::int64_t>(size_of(b.memory.dtype)));
  b.pieces.begin = std::ssize(pieces_);
  for (int s = 0; s < domains_.slices(); ++s) {
    const Range slice = part_in_blocks({0, b.memory.elements}, domains_.slices(), s);
    if (slice.size() == 0) continue;
    const std::int64_t count = domains_.count() > 1 ? std::max<std::int64_t>(1, slice.size() / chunk) : 1;
    const bool driven = domains_.driver(domains_.mine(), s) == domains_.rank;
    for (std::int64_t i = 0; i < count; ++i, ++tags_) {
      if (!driven) continue;
      pieces_.push_back({b.number, slice, i, count, s, tags_});
      if (domains_.count() > 1) lane_bytes_ = std::max(lane_bytes_, lane_bytes(pieces_.back()));
    }
    if (!driven || b.memory.values == nullptr) continue;
    const Range mine = part_in_blocks(slice, domains_.count(), domains_.mine());
    append(b.received, {slice.begin, mine.begin});
    append(b.received, {mine.end, slice.end});
  }
  b.pieces.end = std::ssize(pieces_);
  check(tags_ <= comm::Communicator::kMaxTag, "reduction", "bucket {}: {} pieces, expected at most {}: larger ones",
        b.number, tags_, comm::Communicator::kMaxTag);
}

std::vector<Range> BucketReducer::owned_by(int bucket, int rank) const {
  const Bucket& b = at(bucket);
  const int domain = domains_.domain_of[static_cast<std::size_t>(rank)];
  std::vector<Range> ranges;
  for (int s = 0; s < domains_.slices(); ++s) {
    if (domains_.driver(domain, s) != rank) continue;
    const Range slice = part_in_blocks({0, b.memory.elements}, domains_.slices(), s);
    append(ranges, b.memory.values == nullptr ? slice : part_in_blocks(slice, domains_.count(), domain));
  }
  return ranges;
}

// --- of the thread that computes

void BucketReducer::start(int bucket) {
  Bucket& b = at(bucket);
  flags_.raise(retired_flag(bucket), ++b.started);
}

bool BucketReducer::reduced(int bucket) const {
  const Bucket& b = at(bucket);
  if (b.memory.everywhere) return available(bucket);
  return b.summed.load(std::memory_order_acquire) == b.started;
}

void BucketReducer::release(int bucket) { flags_.raise(released_flag(bucket), at(bucket).started); }

void BucketReducer::send_values(int bucket) { at(bucket).updated.store(at(bucket).started, std::memory_order_release); }

bool BucketReducer::values_arrived(int bucket) const {
  return at(bucket).arrived.load(std::memory_order_acquire) == at(bucket).started;
}

bool BucketReducer::available(int bucket) const {
  return flags_.all_reached(released_flag(bucket), at(bucket).started);
}

// --- of the thread that drives

template <class T>
void BucketReducer::sum(const Bucket& b, std::span<const TreeMerge> merges, Range range, bool root) {
  std::vector<const T*>& operands = std::get<Pointers<T>>(pointers_).operands;
  std::vector<T*>& outs = std::get<Pointers<T>>(pointers_).outs;
  operands.clear();
  outs.clear();
  for (const void* o : operands_) operands.push_back(static_cast<const T*>(o));
  const auto push_out = [&](int local) {
    outs.push_back(
        static_cast<T*>(element(b.memory.slots[static_cast<std::size_t>(local)][0], b.memory.dtype, range.begin)));
  };
  if (root) {
    push_out(domains_.local_rank());
    for (int l = 0; b.memory.everywhere && domains_.count() == 1 && l < domains_.local_size(); ++l) {
      if (l != domains_.local_rank()) push_out(l);
    }
  } else {
    outs.push_back(const_cast<T*>(operands[0]));
  }
  tree_sum<T>(operands, merges, range.size(), outs, {.wire = options_.wire, .root = root, .threads = threads_});
  if (!root || b.memory.squares.empty()) return;
  for (std::int64_t begin = range.begin; begin < range.end; begin += kBlock) {
    b.memory.squares[static_cast<std::size_t>(begin / kBlock)] =
        sum_of_squares(outs[0] + (begin - range.begin), std::min(kBlock, range.end - begin));
  }
}

// All sums of the piece that this domain can complete; in one domain that is the root, which goes where it is wanted.
void BucketReducer::sum_in_domain(const Piece& piece) {
  const Bucket& b = at(piece.bucket);
  const bool root = domains_.count() == 1;
  const auto since = Trace::Clock::now();
  for (int d = 0; d < domains_.count(); ++d) {
    const Range range = part(piece, d);
    for (const DomainTree::Sum& s : tree_.sums) {
      operands_.clear();
      for (int i : s.operands) operands_.push_back(element(operand(b, i), b.memory.dtype, range.begin));
      b.memory.dtype == DType::F64 ? sum<double>(b, s.merges, range, root) : sum<float>(b, s.merges, range, root);
    }
  }
  // Each operand is read once; the sum is written to one place, or to every local rank's.
  std::int64_t bytes = 0;
  for (int d = 0; d < domains_.count(); ++d)
    bytes += part(piece, d).size() * static_cast<std::int64_t>(size_of(b.memory.dtype));
  const auto outs =
      static_cast<std::int64_t>(root && b.memory.everywhere ? domains_.local_size() : std::ssize(tree_.sums));
  summed_ += bytes * (std::ssize(tree_.operands) + outs);
  summing_ns_ += nanoseconds_since(since);
  note(Trace::Track::Memory, "sum", piece, since);
}

void BucketReducer::note(Trace::Track track, std::string_view what, const Piece& piece,
                         Trace::Clock::time_point since) {
  if (Trace* trace = trace_)
    trace->add(track, fmt::format("{} bucket {} piece {}", what, piece.bucket, piece.tag), since);
}

// Base of the slot of an open partial sum of this domain.
void* BucketReducer::operand(const Bucket& b, int i) const {
  const DomainTree::Operand& o = tree_.operands[static_cast<std::size_t>(i)];
  return b.memory.slots[static_cast<std::size_t>(o.local_rank)][static_cast<std::size_t>(o.slot)];
}

bool BucketReducer::admit() {
  bool moved = false;
  for (; std::cmp_less(opened_, buckets_.size()) && flags_.all_reached(retired_flag(opened_), step_); ++opened_) {
    open(at(opened_));
    moved = true;
  }
  for (Lane& lane : lanes_) {
    if (lane.piece != nullptr || domains_.count() == 1) continue;
    lane.piece = next_piece(&lane == lanes_.data());
    if (lane.piece == nullptr) continue;
    sum_in_domain(*lane.piece);
    exchange(lane);
    moved = true;
  }
  return moved;
}

void BucketReducer::open(Bucket& b) {
  b.next = b.pieces.begin;
  if (b.memory.hooked >= 0) return start_hook(b);
  if (b.pieces.size() == 0) return sums_done(b);
  if (domains_.count() > 1) return;
  for (; b.next < b.pieces.end; ++b.next) {
    const Piece& piece = pieces_[static_cast<std::size_t>(b.next)];
    sum_in_domain(piece);
    piece_done(piece);
  }
}

// Of the buckets that are open; null: none is left.
const BucketReducer::Piece* BucketReducer::next_piece(bool oldest) {
  for (int i = 0; i < opened_; ++i) {
    Bucket& b = at(oldest ? i : opened_ - 1 - i);
    if (b.next < b.pieces.end) return &pieces_[static_cast<std::size_t>(b.next++)];
  }
  return nullptr;
}

bool BucketReducer::advance(Lane& lane) {
  if (lane.piece == nullptr || !transport_.all_done(lane.handles)) return false;
  const bool sends_values = at(lane.piece->bucket).memory.values != nullptr;
  note(Trace::Track::Network, lane.phase == Phase::Exchange ? "exchange" : "gather", *lane.piece, lane.since);
  if (lane.phase == Phase::Exchange) {
    sum_parts(lane);
    if (!sends_values) {
      gather(lane);
      return true;
    }
  } else {
    finish_gather(lane);
  }
  piece_done(*std::exchange(lane.piece, nullptr));
  return true;
}

void BucketReducer::piece_done(const Piece& piece) {
  Bucket& b = at(piece.bucket);
  if (--b.left == 0) sums_done(b);
}

void BucketReducer::sums_done(Bucket& b) {
  b.left = b.pieces.size();
  b.summed.store(step_, std::memory_order_release);
  if (b.memory.everywhere) flags_.raise(released_flag(b.number), step_);
  if (b.memory.values == nullptr) --unfinished_;
}

// The updated values of my parts to the other domains, theirs to me: from and into the parameters themselves.
bool BucketReducer::advance_values(Bucket& b) {
  if (b.memory.values == nullptr || b.arrived.load(std::memory_order_relaxed) == step_) return false;
  if (b.updated.load(std::memory_order_acquire) != step_) return false;
  const auto element_type = b.memory.dtype == DType::F64 ? comm::Element::F64 : comm::Element::F32;
  if (!b.sending) {
    for (std::int64_t i = b.pieces.begin; i < b.pieces.end; ++i) {
      const Piece& piece = pieces_[static_cast<std::size_t>(i)];
      const auto message = [&](int domain) {
        const Range range = part(piece, domain);
        return comm::Buffer{element(b.memory.values, b.memory.dtype, range.begin), range.size(), element_type};
      };
      for (int step = 1; step < domains_.count(); ++step) {
        const int domain = (domains_.mine() + step) % domains_.count();
        const int rank = domains_.driver(domain, piece.slice_number);
        b.handles.push_back(transport_.receive(message(domain), rank, piece.tag));
        b.handles.push_back(transport_.send(message(domains_.mine()), rank, piece.tag));
        sent_ += message(domains_.mine()).bytes();
      }
    }
    b.sending = true;
  }
  if (!transport_.all_done(b.handles)) return false;
  b.sending = false;
  b.arrived.store(step_, std::memory_order_release);
  --unfinished_;
  return true;
}

// The hook gets one sum of all that this rank holds.
void BucketReducer::start_hook(Bucket& b) {
  const auto all = [&]<class T>(T*) {
    auto* sum = static_cast<T*>(operand(b, 0));
    for (std::size_t i = 1; i < tree_.operands.size(); ++i)
      add_into<T>(b.memory.elements, static_cast<const T*>(operand(b, static_cast<int>(i))), sum);
    options_.hook->start(b.memory.hooked, std::span<T>(sum, static_cast<std::size_t>(b.memory.elements)));
  };
  b.memory.dtype == DType::F64 ? all(static_cast<double*>(nullptr)) : all(static_cast<float*>(nullptr));
  b.sending = true;
}

bool BucketReducer::advance_hook(Bucket& b) {
  if (b.memory.hooked < 0 || !b.sending || !options_.hook->done(b.memory.hooked)) return false;
  b.sending = false;
  const auto add_squares = [&]<class T>(const T* sum) {
    for (std::int64_t begin = 0; begin < b.memory.elements; begin += kBlock) {
      b.memory.squares[static_cast<std::size_t>(begin / kBlock)] =
          sum_of_squares(sum + begin, std::min(kBlock, b.memory.elements - begin));
    }
  };
  // Each rank has the whole sum: one of them brings its squares.
  if (!b.memory.squares.empty() && domains_.rank == 0) {
    b.memory.dtype == DType::F64 ? add_squares(static_cast<const double*>(operand(b, 0)))
                                 : add_squares(static_cast<const float*>(operand(b, 0)));
  }
  sums_done(b);
  return true;
}

void BucketReducer::time_network() {
  const bool busy = std::ranges::any_of(lanes_, [](const Lane& lane) { return lane.piece != nullptr; });
  const bool was_busy = network_since_ != Trace::Clock::time_point{};
  if (busy == was_busy) return;
  if (was_busy) network_ns_ += nanoseconds_since(network_since_);
  network_since_ = busy ? Trace::Clock::now() : Trace::Clock::time_point{};
}

bool BucketReducer::progress() {
  bool moved = admit();
  for (Bucket& b : buckets_) moved = advance_hook(b) || moved;
  if (domains_.count() > 1) {
    for (Lane& lane : lanes_) moved = advance(lane) || moved;
    for (Bucket& b : buckets_) moved = advance_values(b) || moved;
    time_network();
  }
  if (unfinished_ == 0) {
    ++step_;
    opened_ = 0;
    unfinished_ = static_cast<int>(buckets_.size());
  }
  return moved;
}

}  // namespace lockstep
