#include "lockstep/parallel/exchange/allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/backoff.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"

namespace lockstep {
namespace {

constexpr std::int64_t kBlock = 1024;    // elements: slices begin at multiples, of whole cache lines
constexpr std::int64_t kPartBlock = 64;  // and the domains' parts of a slice

}  // namespace

Allreduce::Allreduce(const comm::Communicator& comm, const AllreduceOptions& options)
    : comm_(comm.duplicate()), threads_(options.threads) {
  comm::check_same(comm_, "the path and the chunk of an allreduce",
                   fmt::format("{} {}", name_of(options.path), options.chunk_bytes));
  choose(options);
  if (path_ == AllreducePath::Mpi || comm_.size() == 1) return;
  local_rank_ = domains_.local_rank();
  make_windows(options.chunk_bytes > 0 ? options.chunk_bytes : choose_chunk_bytes(domains_));
}

// Ranks that make more calls do not wait for this one.
Allreduce::~Allreduce() {
  if (flags_ && comm::Environment::active())
    flags_->leave(comm_.rank(), calls_made_, std::uncaught_exceptions() > 0 || comm_.poisoned());
}

void Allreduce::choose(const AllreduceOptions& options) {
  const Domains nodes =
      options.domains ? *options.domains : Domains::nodes(comm_.topology(), comm_.rank(), comm_.size());
  const auto wanted = static_cast<std::size_t>(nodes.local_size() * kSlots * choose_chunk_bytes(nodes));
  PathChoice choice = choose_path(comm_, {.path = options.path, .domains = nodes, .shared_bytes = wanted});
  path_ = choice.path;
  domains_ = std::move(choice.domains);
  reason_ = std::move(choice.reason);
}

void Allreduce::make_windows(std::int64_t chunk_bytes) {
  chunk_bytes_ = (chunk_bytes + 63) / 64 * 64;
  tree_ = std::make_unique<DomainTree>(WorldLayout(comm_.rank(), comm_.size(), 0), domains_);
  memory_ = std::make_unique<NodeMemory>(comm_, domains_, false);
  transport_ = std::make_unique<CommTransport>(comm_);
  staging_ = memory_->segments(memory_->own(static_cast<std::size_t>(kSlots * chunk_bytes_)));
  const auto rows = memory_->segments(memory_->own(SharedFlags::bytes(kFlags)));
  const auto calls = memory_->segments(memory_->own(ReduceCalls::bytes()));
  flags_ = std::make_unique<SharedFlags>(rows, local_rank_, "call");
  calls_ = std::make_unique<ReduceCalls>(*transport_, *flags_, calls, domains_, *tree_);
  for (int s = 0; s < domains_.slices(); ++s) {
    if (drives(s)) slices_.push_back(s);
  }
  if (domains_.count() == 1) return;
  for (int slot = 0; slot < kSlots; ++slot) {
    std::vector<InFlightChunk>& chunks = in_flight_.emplace_back();
    for (std::size_t i = 0; i < slices_.size(); ++i)
      chunks.push_back({SliceExchange(*transport_, domains_, *tree_), nullptr});
  }
}

std::span<std::byte> Allreduce::allocate(std::size_t bytes) {
  if (!memory_) {
    AlignedBuffer& buffer = private_.emplace_back(allocate_aligned(bytes));
    std::memset(buffer.get(), 0, bytes);
    return {buffer.get(), bytes};
  }
  flags_->check_nobody_left();  // own() is collective, and a rank that has left does not take part
  const std::span<std::byte> mine = memory_->own(bytes);
  allocations_.push_back(memory_->segments(mine));
  return mine;
}

std::string Allreduce::fault(const comm::ConstBuffer& in, const comm::Buffer& out) const {
  if (in.count < 0 || in.count != out.count || in.element != out.element) {
    return fmt::format("{} {} do not fit into {} {}", in.count, name_of(in.element), out.count, name_of(out.element));
  }
  if (in.count > 0 && (in.data == nullptr || out.data == nullptr))
    return fmt::format("{} {} at a null pointer", in.count, name_of(in.element));
  if (in.element == comm::Element::Byte) return "bytes are opaque: reduce u8 or a wider type";
  const auto begin_in = reinterpret_cast<std::uintptr_t>(in.data),
             begin_out = reinterpret_cast<std::uintptr_t>(out.data);
  const auto distance = begin_in < begin_out ? begin_out - begin_in : begin_in - begin_out;
  if (distance != 0 && distance < static_cast<std::uintptr_t>(in.bytes())) {
    return fmt::format("input and output of {} bytes overlap by {}", in.bytes(),
                       in.bytes() - static_cast<std::int64_t>(distance));
  }
  return {};
}

ReduceCall::Place Allreduce::place_of(const void* data, std::int64_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(data);
  for (std::size_t a = 0; a < allocations_.size(); ++a) {
    const std::span<std::byte> own = allocations_[a][static_cast<std::size_t>(local_rank_)];
    if (std::greater_equal<>()(begin, own.data()) && std::less_equal<>()(begin + bytes, own.data() + own.size()))
      return {static_cast<std::int32_t>(a), begin - own.data()};
  }
  return {};
}

std::byte* Allreduce::address(int local_rank, const ReduceCall::Place& place) const {
  return allocations_[static_cast<std::size_t>(place.allocation)][static_cast<std::size_t>(local_rank)].data() +
         place.offset;
}

void Allreduce::allreduce(comm::ConstBuffer in, comm::Buffer out, comm::ReduceOp op) {
  const std::string wrong = fault(in, out);
  if (!memory_) {
    check(wrong.empty(), "allreduce", "rank {}: {}", comm_.rank(), wrong);
    if (in.data != out.data && in.count > 0) std::memcpy(out.data, in.data, static_cast<std::size_t>(in.bytes()));
    if (comm_.size() > 1) comm_.allreduce(out, op);
    return;
  }
  check(!failed_, "allreduce", "out of use since an earlier failure");
  ReduceCall call{.count = in.count, .element = in.element, .op = op};
  wrong.copy(call.error.data(), call.error.size() - 1);
  if (wrong.empty()) {
    call.in = place_of(in.data, in.bytes());
    call.out = place_of(out.data, in.bytes());
  }
  try {
    calls_->meet(call, in.data, out.data);
    ++calls_made_;
    if (in.bytes() <= ReduceCalls::kInline) return;
    bool inputs = true, outputs = true;
    for (int l = 0; l < domains_.local_size(); ++l) {
      inputs = inputs && calls_->of(l).in.allocation >= 0;
      outputs = outputs && calls_->of(l).out.allocation >= 0;
    }
    if (inputs && outputs && domains_.count() == 1) return reduce_in_place(in, out, op);
    const std::int64_t chunk = chunk_bytes_ / size_of(in.element);
    Pass pass{
        .in = in, .out = out, .op = op, .direct = inputs, .chunk = chunk, .chunks = (in.count + chunk - 1) / chunk};
    run(pass);
  } catch (const comm::AgreedError&) {
    throw;
  } catch (...) {
    give_up();
    throw;
  }
}

// Messages of the call may lie in the caller's memory, which is gone when the caller has the error.
void Allreduce::give_up() {
  failed_ = true;
  flags_->fail();
  transport_.reset();  // nothing drives it any more
  if (comm_.has_abandoned())
    log()->error("[allreduce] rank {}: MPI may go on reading and writing the memory of the call that failed: {}",
                 comm_.rank(), comm::current_error());
}

// Each rank its slice, from all ranks' inputs to all ranks' outputs.
void Allreduce::reduce_in_place(const comm::ConstBuffer& in, const comm::Buffer& out, comm::ReduceOp op) {
  const Range slice = slice_of({0, in.count}, local_rank_);
  const std::int64_t offset = slice.begin * size_of(in.element);
  operands_.clear();
  outs_.assign(1, static_cast<std::byte*>(out.data) + offset);
  for (int l = 0; l < domains_.local_size(); ++l) {
    operands_.push_back(address(l, calls_->of(l).in) + offset);
    if (l != local_rank_) outs_.push_back(address(l, calls_->of(l).out) + offset);
  }
  tree_reduce({.element = in.element, .op = op, .merges = tree_->sums[0].merges, .threads = threads_}, operands_,
              slice.size(), outs_);
  flags_->raise(kFinished, ++direct_);
  for (Backoff wait; !flags_->all_reached(kFinished, direct_);) wait.pause();
}

void Allreduce::run(Pass& pass) {
  for (Backoff wait; pass.copied < pass.chunks;) {
    const bool filled = fill(pass), begun = reduce(pass), exchanged = exchange(pass), copied = copy_out(pass);
    if (filled || begun || exchanged || copied) {
      wait = {};
    } else {
      wait.pause();
    }
  }
  base_ = flag_value(pass.chunks);
}

Range Allreduce::slice_of(Range chunk, int slice) const {
  const Range part = part_in_blocks({0, chunk.size()}, domains_.slices(), slice, kBlock);
  return {chunk.begin + part.begin, chunk.begin + part.end};
}

std::byte* Allreduce::staging(int local_rank, std::int64_t index) const {
  return staging_[static_cast<std::size_t>(local_rank)].data() + index % kSlots * chunk_bytes_;
}

// Where others read this rank's input; what it reduces itself it reads from `in`. A slot is free once all ranks have
// copied what it held.
bool Allreduce::fill(Pass& pass) {
  if (pass.filled == pass.chunks || !flags_->all_reached(kCopied, flag_value(pass.filled + 1 - kSlots))) return false;
  const std::int64_t index = pass.filled++;
  for (int s = 0; !pass.direct && domains_.local_size() > 1 && s < domains_.slices(); ++s) {
    const Range chunk = pass.range(index), slice = slice_of(chunk, s);
    if (drives(s) || slice.size() == 0) continue;
    const comm::ConstBuffer from = pass.in.part(slice.begin, slice.size());
    std::memcpy(staging(local_rank_, index) + (slice.begin - chunk.begin) * size_of(pass.in.element), from.data,
                static_cast<std::size_t>(from.bytes()));
  }
  flags_->raise(kFilled, flag_value(pass.filled));
  return true;
}

bool Allreduce::reduce(Pass& pass) {
  if (pass.begun == pass.filled || !flags_->all_reached(kFilled, flag_value(pass.begun + 1))) return false;
  const std::int64_t index = pass.begun++;
  for (const int slice : slices_) {
    if (domains_.count() == 1) {
      reduce_slice(pass, index, slice);
    } else {
      start_exchange(pass, index, slice);
    }
  }
  if (domains_.count() == 1) flags_->raise(kReduced, flag_value(++pass.reduced));
  return true;
}

const void* Allreduce::operand(const Pass& pass, std::int64_t index, int local_rank, std::int64_t element) const {
  const std::int64_t width = size_of(pass.in.element);
  if (local_rank == local_rank_) return static_cast<const std::byte*>(pass.in.data) + element * width;
  if (pass.direct) return address(local_rank, calls_->of(local_rank).in) + element * width;
  return staging(local_rank, index) + (element - pass.range(index).begin) * width;
}

// The root's slice goes to this rank's output and beside it into the window, where the others find it.
void Allreduce::reduce_slice(const Pass& pass, std::int64_t index, int slice) {
  const Range chunk = pass.range(index), range = slice_of(chunk, slice);
  if (range.size() == 0) return;
  const std::int64_t width = size_of(pass.in.element);
  operands_.clear();
  for (int l = 0; l < domains_.local_size(); ++l) operands_.push_back(operand(pass, index, l, range.begin));
  outs_.assign({staging(local_rank_, index) + (range.begin - chunk.begin) * width,
                static_cast<std::byte*>(pass.out.data) + range.begin * width});
  tree_reduce({.element = pass.in.element, .op = pass.op, .merges = tree_->sums[0].merges}, operands_, range.size(),
              outs_);
}

// A rank alone in its domain sends from `in` and receives into `out`.
void Allreduce::start_exchange(const Pass& pass, std::int64_t index, int slice) {
  const Range chunk = pass.range(index), range = slice_of(chunk, slice);
  const std::int64_t width = size_of(pass.in.element);
  const std::int64_t slot = index % kSlots;
  InFlightChunk& in_flight = in_flight_[static_cast<std::size_t>(slot)]
                                       [static_cast<std::size_t>(std::ranges::find(slices_, slice) - slices_.begin())];
  SliceWork& work = in_flight.exchange.work();
  work.element = pass.in.element;
  work.op = pass.op;
  work.slice = slice;
  work.tag = ReduceCalls::kTags + static_cast<int>(slot) * domains_.slices() + slice;
  work.parts.clear();
  for (int d = 0; d < domains_.count(); ++d)
    work.parts.push_back(part_in_blocks({0, range.size()}, domains_.count(), d, kPartBlock));
  work.operands.clear();
  for (const DomainTree::Operand& o : tree_->operands)
    work.operands.push_back(operand(pass, index, o.local_rank, range.begin));
  const bool sums = std::ranges::any_of(tree_->sums, [](const DomainTree::Sum& s) { return !s.merges.empty(); });
  if (sums && !in_flight.open) {
    in_flight.open = allocate_aligned(tree_->sums.size() * static_cast<std::size_t>(chunk_bytes_));
    transport_->keep(in_flight.open);
  }
  work.open.clear();
  for (std::size_t i = 0; sums && i < tree_->sums.size(); ++i)
    work.open.push_back(in_flight.open.get() + static_cast<std::int64_t>(i) * chunk_bytes_);
  void* result = domains_.local_size() == 1 ? static_cast<std::byte*>(pass.out.data) + range.begin * width
                                            : staging(local_rank_, index) + (range.begin - chunk.begin) * width;
  work.outs.assign(1, result);
  in_flight.exchange.start();
}

bool Allreduce::exchange(Pass& pass) {
  if (domains_.count() == 1) return false;
  bool moved = false;
  for (std::int64_t index = pass.reduced; index < pass.begun; ++index) {
    bool done = true;
    for (InFlightChunk& chunk : in_flight_[static_cast<std::size_t>(index % kSlots)]) {
      while (chunk.exchange.advance()) moved = true;
      done = done && chunk.exchange.idle();
    }
    if (!done || index != pass.reduced) continue;
    flags_->raise(kReduced, flag_value(++pass.reduced));
    moved = true;
  }
  return moved;
}

bool Allreduce::copy_out(Pass& pass) {
  if (pass.copied == pass.begun || !flags_->all_reached(kReduced, flag_value(pass.copied + 1))) return false;
  const std::int64_t index = pass.copied++;
  const Range chunk = pass.range(index);
  for (int s = 0; domains_.local_size() > 1 && s < domains_.slices(); ++s) {
    const int driver = s % domains_.local_size();
    const Range slice = slice_of(chunk, s);
    if (slice.size() == 0 || (domains_.count() == 1 && driver == local_rank_)) continue;
    const comm::Buffer into = pass.out.part(slice.begin, slice.size());
    std::memcpy(into.data, staging(driver, index) + (slice.begin - chunk.begin) * size_of(pass.out.element),
                static_cast<std::size_t>(into.bytes()));
  }
  flags_->raise(kCopied, flag_value(pass.copied));
  return true;
}

}  // namespace lockstep
