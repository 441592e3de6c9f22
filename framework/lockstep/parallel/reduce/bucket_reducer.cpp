#include "lockstep/parallel/reduce/bucket_reducer.h"

#include <algorithm>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/sum_of_squares.h"

namespace lockstep::parallel {
namespace {

comm::Element element_of(DType dtype) { return dtype == DType::F64 ? comm::Element::F64 : comm::Element::F32; }

void* element(const void* base, DType dtype, std::int64_t index) {
  return static_cast<std::byte*>(const_cast<void*>(base)) + index * static_cast<std::int64_t>(size_of(dtype));
}

// Writes the sums of squares of a range that begins at a block, if the bucket has squares.
void note_squares(const BucketMemory& memory, const void* sums, Range range) {
  constexpr std::int64_t kBlock = BucketReducer::kBlock;
  for (std::int64_t begin = range.begin; !memory.squares.empty() && begin < range.end; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, range.end - begin);
    const void* block = element(sums, memory.dtype, begin);
    memory.squares[static_cast<std::size_t>(begin / kBlock)] =
        memory.dtype == DType::F64 ? sum_of_squares(static_cast<const double*>(block), n)
                                   : sum_of_squares(static_cast<const float*>(block), n);
  }
}

}  // namespace

BucketReducer::BucketReducer(Transport& transport, SharedFlags& flags, const Domains& domains, const WorldLayout& world,
                             const ReducerOptions& options)
    : transport_(transport),
      flags_(flags),
      domains_(domains),
      tree_(world, domains),
      options_(options),
      threads_(options.threads),
      pieces_(domains, options.piece_bytes) {
  const std::size_t chunks = domains_.count() > 1 ? kInFlight : 1;
  for (std::size_t i = 0; i < chunks; ++i) chunks_.push_back({SliceExchange(transport_, domains_, tree_)});
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
  add_pieces(b);
  step_.unfinished = number + 1;
  b.left = b.pieces.size();
  return number;
}

void BucketReducer::add_pieces(Bucket& b) {
  const std::int64_t elements = b.memory.elements;
  if (b.memory.hooked >= 0) {
    check(options_.hook != nullptr && domains_.local_size() == 1 && b.memory.values == nullptr, "reduction",
          "bucket {} is for a hook, expected a hook and a domain for every rank", b.number);
    b.owned = {{0, elements}};
    return;
  }
  const bool one_owner = b.memory.values != nullptr;
  b.pieces = pieces_.add(b.number, elements, static_cast<std::int64_t>(size_of(b.memory.dtype)));
  b.owned = pieces_.owned_by(domains_.rank, elements, one_owner);
  if (one_owner) b.received = pieces_.received(elements);
  SliceWork work;
  for (std::int64_t i = b.pieces.begin; domains_.count() > 1 && i < b.pieces.end; ++i) {
    set_work(work, pieces_[i]);
    chunk_bytes_ = std::max(chunk_bytes_, chunks_[0].exchange.scratch_bytes(work));
  }
}

// The first element of the slot of an open partial sum of this domain.
void* BucketReducer::operand(const Bucket& b, std::size_t i) const {
  const DomainTree::Operand& o = tree_.operands[i];
  return b.memory.slots[static_cast<std::size_t>(o.local_rank)][static_cast<std::size_t>(o.slot)];
}

void BucketReducer::set_work(SliceWork& work, const BucketPiece& piece) const {
  const BucketMemory& memory = at(piece.bucket).memory;
  work.element = element_of(memory.dtype);
  work.wire = memory.dtype == DType::F32 ? options_.wire : Wire::Exact;
  work.threads = threads_;
  work.result = memory.values != nullptr ? SliceWork::Result::Scattered : SliceWork::Result::Gathered;
  work.slice = piece.slice_number;
  work.tag = piece.tag;
  work.parts.clear();
  for (int d = 0; d < domains_.count(); ++d) work.parts.push_back(pieces_.part(piece, d));
  work.operands.clear();
  for (std::size_t i = 0; i < tree_.operands.size(); ++i) work.operands.push_back(operand(at(piece.bucket), i));
  const auto mine = static_cast<std::size_t>(domains_.local_rank());
  work.outs.assign(1, memory.slots[mine][0]);
  const bool everywhere = memory.everywhere && (domains_.count() == 1 || memory.values == nullptr);
  for (std::size_t l = 0; everywhere && l < memory.slots.size(); ++l) {
    if (l != mine) work.outs.push_back(memory.slots[l][0]);
  }
}

// --- for the thread that computes

void BucketReducer::start(int bucket) {
  Bucket& b = at(bucket);
  flags_.raise(retired_flag(bucket), ++b.steps.started);
}

bool BucketReducer::reduced(int bucket) const {
  const Bucket& b = at(bucket);
  if (b.memory.everywhere) return available(bucket);
  return b.steps.summed.load(std::memory_order_acquire) == b.steps.started;
}

std::vector<Range> BucketReducer::counted(int bucket) const {
  const Bucket& b = at(bucket);
  if (b.memory.hooked < 0) return pieces_.owned_by(domains_.rank, b.memory.elements, true);
  return domains_.rank == 0 ? b.owned : std::vector<Range>{};  // each rank has the whole sum
}

void BucketReducer::release(int bucket) { flags_.raise(released_flag(bucket), at(bucket).steps.started); }

void BucketReducer::send_values(int bucket) {
  StepsOfBucket& steps = at(bucket).steps;
  steps.updated.store(steps.started, std::memory_order_release);
}

bool BucketReducer::values_arrived(int bucket) const {
  return at(bucket).steps.arrived.load(std::memory_order_acquire) == at(bucket).steps.started;
}

bool BucketReducer::available(int bucket) const {
  return flags_.all_reached(released_flag(bucket), at(bucket).steps.started);
}

// --- for the thread that drives

bool BucketReducer::admit() {
  bool moved = false;
  for (; std::cmp_less(step_.opened, buckets_.size()) && flags_.all_reached(retired_flag(step_.opened), step_.number);
       ++step_.opened) {
    open(at(step_.opened));
    moved = true;
  }
  for (InFlightChunk& chunk : chunks_) {
    if (chunk.piece != nullptr || domains_.count() == 1) continue;
    const BucketPiece* piece = next_piece(&chunk == chunks_.data());
    if (piece == nullptr) continue;
    begin(chunk, *piece);
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
    begin(chunks_[0], pieces_[b.next]);
    piece_done(pieces_[b.next]);
  }
}

// The next piece of the open buckets; null: none is left.
const BucketPiece* BucketReducer::next_piece(bool oldest) {
  for (int i = 0; i < step_.opened; ++i) {
    Bucket& b = at(oldest ? i : step_.opened - 1 - i);
    if (b.next < b.pieces.end) return &pieces_[b.next++];
  }
  return nullptr;
}

// Sums within the domain; with several domains the chunk is in flight afterwards.
void BucketReducer::begin(InFlightChunk& chunk, const BucketPiece& piece) {
  const auto since = Trace::Clock::now();
  SliceWork& work = chunk.exchange.work();
  set_work(work, piece);
  chunk.exchange.start();
  // Each operand is read once; the sum is written once, or once for every local rank.
  std::int64_t elements = 0;
  for (const Range part : work.parts) elements += part.size();
  const std::int64_t outs = domains_.count() == 1 ? std::ssize(work.outs) : std::ssize(tree_.sums);
  traffic_.add_summed(elements * size_of(work.element) * (std::ssize(work.operands) + outs), since);
  traffic_.note(Trace::Track::Memory, "sum", piece.bucket, piece.tag, since);
  if (chunk.exchange.idle()) return;
  chunk.piece = &piece;
  chunk.exchange.reserve(chunk_bytes_);
  chunk.since = Trace::Clock::now();
  chunk.exchange.advance();
}

bool BucketReducer::advance(InFlightChunk& chunk) {
  if (chunk.piece == nullptr) return false;
  const bool gathers = chunk.exchange.phase() == SliceExchange::Phase::Gather;
  const bool moved = chunk.exchange.advance();
  traffic_.add_sent(chunk.exchange.sent() - std::exchange(chunk.sent, chunk.exchange.sent()));
  if (!moved) return false;
  traffic_.note(Trace::Track::Network, gathers ? "gather" : "exchange", chunk.piece->bucket, chunk.piece->tag,
                chunk.since);
  chunk.since = Trace::Clock::now();
  if (chunk.exchange.idle()) piece_done(*std::exchange(chunk.piece, nullptr));
  return true;
}

void BucketReducer::piece_done(const BucketPiece& piece) {
  Bucket& b = at(piece.bucket);
  note_squares(b.memory, b.memory.slots[static_cast<std::size_t>(domains_.local_rank())][0],
               pieces_.part(piece, domains_.mine()));
  if (--b.left == 0) sums_done(b);
}

void BucketReducer::sums_done(Bucket& b) {
  b.left = b.pieces.size();
  b.steps.summed.store(step_.number, std::memory_order_release);
  if (b.memory.everywhere) flags_.raise(released_flag(b.number), step_.number);
  if (b.memory.values == nullptr) --step_.unfinished;
}

bool BucketReducer::advance_values(Bucket& b) {
  if (b.memory.values == nullptr || b.steps.arrived.load(std::memory_order_relaxed) == step_.number) return false;
  if (b.steps.updated.load(std::memory_order_acquire) != step_.number) return false;
  if (!std::exchange(b.sending, true)) send_updated(b);
  if (!transport_.all_done(b.handles)) return false;
  b.sending = false;
  b.steps.arrived.store(step_.number, std::memory_order_release);
  --step_.unfinished;
  return true;
}

// Sends the updated values of this rank's parts to the other domains and receives theirs, from and into the parameters.
void BucketReducer::send_updated(Bucket& b) {
  for (std::int64_t i = b.pieces.begin; i < b.pieces.end; ++i) {
    const BucketPiece& piece = pieces_[i];
    const auto message = [&](int domain) {
      const Range range = pieces_.part(piece, domain);
      return comm::Buffer{element(b.memory.values, b.memory.dtype, range.begin), range.size(),
                          element_of(b.memory.dtype)};
    };
    for (int step = 1; step < domains_.count(); ++step) {
      const int domain = (domains_.mine() + step) % domains_.count();
      const int rank = domains_.driver(domain, piece.slice_number);
      b.handles.push_back(transport_.receive(message(domain), rank, piece.tag));
      b.handles.push_back(transport_.send(message(domains_.mine()), rank, piece.tag));
      traffic_.add_sent(message(domains_.mine()).bytes());
    }
  }
}

// The hook gets one sum over all shards of this rank.
void BucketReducer::start_hook(Bucket& b) {
  const auto all = [&]<class T>(T*) {
    auto* sum = static_cast<T*>(operand(b, 0));
    for (std::size_t i = 1; i < tree_.operands.size(); ++i)
      add_into<T>(b.memory.elements, static_cast<const T*>(operand(b, i)), sum);
    options_.hook->start(b.memory.hooked, std::span<T>(sum, static_cast<std::size_t>(b.memory.elements)));
  };
  b.memory.dtype == DType::F64 ? all(static_cast<double*>(nullptr)) : all(static_cast<float*>(nullptr));
  b.sending = true;
}

bool BucketReducer::advance_hook(Bucket& b) {
  if (b.memory.hooked < 0 || !b.sending || !options_.hook->done(b.memory.hooked)) return false;
  b.sending = false;
  // Each rank has the whole sum, so one rank provides its squares.
  if (domains_.rank == 0) note_squares(b.memory, operand(b, 0), {0, b.memory.elements});
  sums_done(b);
  return true;
}

bool BucketReducer::progress() {
  bool moved = admit();
  for (Bucket& b : buckets_) moved = advance_hook(b) || moved;
  if (domains_.count() > 1) {
    for (InFlightChunk& chunk : chunks_) moved = advance(chunk) || moved;
    for (Bucket& b : buckets_) moved = advance_values(b) || moved;
    traffic_.network(std::ranges::any_of(chunks_, [](const InFlightChunk& c) { return c.piece != nullptr; }));
  }
  if (step_.unfinished == 0) step_ = {.number = step_.number + 1, .unfinished = static_cast<int>(buckets_.size())};
  return moved;
}

}  // namespace lockstep::parallel
