#include "lockstep/parallel/exchange/chunk_pipeline.h"

#include <algorithm>
#include <cstring>

namespace lockstep::parallel {
namespace {

constexpr std::int64_t kSliceBlock = 1024;  // elements: slices begin at multiples of this, so at cache lines
constexpr std::int64_t kPartBlock = 64;     // likewise for the parts of domains in a slice

void* at(const void* base, std::int64_t width, std::int64_t index) {
  return static_cast<std::byte*>(const_cast<void*>(base)) + index * width;
}

}  // namespace

ChunkPipeline::ChunkPipeline(Transport& transport, SharedFlags& flags, std::span<const std::span<std::byte>> staging,
                             const Domains& domains, const DomainTree& tree, const Options& options)
    : transport_(transport),
      flags_(flags),
      domains_(domains),
      tree_(tree),
      options_(options),
      staging_(staging.begin(), staging.end()) {
  for (int s = 0; s < domains_.slices(); ++s) {
    if (drives(s)) slices_.push_back(s);
  }
  for (int slot = 0; slot < kSlots; ++slot) {
    in_flight_.emplace_back();
    for (std::size_t i = 0; i < slices_.size(); ++i)
      in_flight_.back().push_back({SliceExchange(transport_, domains_, tree_), nullptr});
  }
}

void ChunkPipeline::add(std::shared_ptr<ChunkedReduction> reduction) {
  Job& job = *reduction;
  const bool seen = domains_.count() == 1 && !job.inputs.empty();
  job.in_place = seen && (!job.parts.empty() || !job.outputs.empty());
  job.by_rank = !job.parts.empty() && domains_.slices() == 1;
  job.chunk = job.in_place ? job.in.count : options_.chunk_bytes / size_of(job.in.element);
  job.first = counts_.added;
  job.chunks = (job.in.count + job.chunk - 1) / job.chunk;
  counts_.added += job.chunks;
  jobs_.push_back(std::move(reduction));
}

bool ChunkPipeline::progress() {
  if (jobs_.empty()) return false;
  const bool filled = fill(), begun = reduce(), exchanged = exchange(), copied = copy_out();
  return filled || begun || exchanged || copied;
}

ChunkPipeline::Job& ChunkPipeline::job_of(std::int64_t number) const {
  return **std::ranges::find_if(jobs_, [&](const auto& job) { return number < job->first + job->chunks; });
}

Range ChunkPipeline::elements_of(const Job& job, std::int64_t number) {
  const std::int64_t begin = (number - job.first) * job.chunk;
  return {begin, std::min(begin + job.chunk, job.in.count)};
}

Range ChunkPipeline::slice_of(Range chunk, int slice) const {
  const Range part = part_in_blocks({0, chunk.size()}, domains_.slices(), slice, kSliceBlock);
  return {chunk.begin + part.begin, chunk.begin + part.end};
}

std::byte* ChunkPipeline::staging(int local_rank, std::int64_t number) const {
  return staging_[static_cast<std::size_t>(local_rank)].data() + number % kSlots * options_.chunk_bytes;
}

// Copies this rank's input for the other ranks; this rank reads its own operand from `in`. A slot is free once all
// ranks have copied its earlier content.
bool ChunkPipeline::fill() {
  if (counts_.filled == counts_.added || !all_reached(kCopied, counts_.filled + 1 - kSlots)) return false;
  const std::int64_t number = counts_.filled++;
  const Job& job = job_of(number);
  const Range chunk = elements_of(job, number);
  for (int s = 0; job.inputs.empty() && domains_.local_size() > 1 && s < domains_.slices(); ++s) {
    const Range slice = slice_of(chunk, s);
    if (drives(s) || slice.size() == 0) continue;
    const comm::ConstBuffer from = job.in.part(slice.begin, slice.size());
    std::memcpy(at(staging(domains_.local_rank(), number), size_of(job.in.element), slice.begin - chunk.begin),
                from.data, static_cast<std::size_t>(from.bytes()));
  }
  raise(kFilled, counts_.filled);
  return true;
}

bool ChunkPipeline::reduce() {
  if (counts_.begun == counts_.filled) return false;
  const Job& job = job_of(counts_.begun);
  if (job.inputs.empty() && !all_reached(kFilled, counts_.begun + 1)) return false;
  for (std::size_t i = 0; i < slices_.size(); ++i) start(job, counts_.begun, slices_[i], in_flight(counts_.begun)[i]);
  ++counts_.begun;
  return true;
}

bool ChunkPipeline::exchange() {
  bool moved = false;
  for (std::int64_t number = counts_.reduced; number < counts_.begun; ++number) {
    bool done = true;
    for (InFlightChunk& chunk : in_flight(number)) {
      while (chunk.exchange.advance()) moved = true;
      done = done && chunk.exchange.idle();
    }
    if (!done || number != counts_.reduced) continue;
    raise(kReduced, ++counts_.reduced);
    moved = true;
  }
  return moved;
}

void ChunkPipeline::start(const Job& job, std::int64_t number, int slice, InFlightChunk& chunk) {
  SliceWork& work = chunk.exchange.work();
  work.element = job.in.element;
  work.op = job.op;
  work.threads = options_.threads && job.in_place;
  work.slice = slice;
  work.tag = options_.first_tag + static_cast<int>(number % kSlots) * domains_.slices() + slice;
  work.result = SliceWork::Result::Gathered;
  work.parts.clear();
  work.operands.clear();
  work.open.clear();
  work.outs.clear();
  work.out_begin = 0;
  if (job.in_place) {
    set_in_place(job, work);
  } else if (job.by_rank) {
    set_by_rank(job, number, work);
  } else {
    set_slice(job, number, chunk, work);
  }
  chunk.exchange.start();
}

// Reduces this rank's slice, or its part of a reduce_scatter, from the inputs of all ranks to the outputs of all ranks.
void ChunkPipeline::set_in_place(const Job& job, SliceWork& work) const {
  const auto rank = static_cast<std::size_t>(domains_.rank);
  work.parts.push_back(job.parts.empty() ? slice_of({0, job.in.count}, domains_.local_rank()) : job.parts[rank]);
  work.operands.assign(job.inputs.begin(), job.inputs.end());
  work.outs.push_back(job.out.data);
  if (!job.parts.empty()) {
    work.out_begin = job.parts[rank].begin;
    return;
  }
  for (int l = 0; l < domains_.local_size(); ++l) {
    if (l != domains_.local_rank()) work.outs.push_back(job.outputs[static_cast<std::size_t>(l)]);
  }
}

// A chunk is a share of each rank's part; every rank is a domain. The data goes from `in` to `out` without a copy.
void ChunkPipeline::set_by_rank(const Job& job, std::int64_t number, SliceWork& work) const {
  work.result = SliceWork::Result::Scattered;
  for (int d = 0; d < domains_.count(); ++d) {
    const Range whole = job.parts[static_cast<std::size_t>(domains_.of(d)[0])];
    const Range part = part_in_blocks({0, whole.size()}, job.chunks, number - job.first, kPartBlock);
    work.parts.push_back({whole.begin + part.begin, whole.begin + part.end});
  }
  work.operands.push_back(job.in.data);
  work.outs.push_back(job.out.data);
  work.out_begin = job.parts[static_cast<std::size_t>(domains_.rank)].begin;
}

// Indices are relative to the begin of the slice.
void ChunkPipeline::set_slice(const Job& job, std::int64_t number, InFlightChunk& in_flight, SliceWork& work) {
  const Range chunk = elements_of(job, number), slice = slice_of(chunk, work.slice);
  const std::int64_t width = size_of(job.in.element);
  for (int d = 0; d < domains_.count(); ++d)
    work.parts.push_back(part_in_blocks({0, slice.size()}, domains_.count(), d, kPartBlock));
  for (const DomainTree::Operand& o : tree_.operands)
    work.operands.push_back(operand(job, number, o.local_rank, slice.begin));
  const bool sums = std::ranges::any_of(tree_.sums, [](const DomainTree::Sum& s) { return !s.merges.empty(); });
  if (domains_.count() > 1 && sums) {
    if (!in_flight.open) {
      in_flight.open = allocate_aligned(tree_.sums.size() * static_cast<std::size_t>(options_.chunk_bytes));
      transport_.keep(in_flight.open);
    }
    for (std::size_t i = 0; i < tree_.sums.size(); ++i)
      work.open.push_back(in_flight.open.get() + i * static_cast<std::size_t>(options_.chunk_bytes));
  }
  void* staged = at(staging(domains_.local_rank(), number), width, slice.begin - chunk.begin);
  // A rank alone in its domain needs no copy; in one domain the sum is written twice while it is in the cache.
  const bool whole = job.parts.empty();
  if (!whole || domains_.local_size() > 1) work.outs.push_back(staged);
  if (whole && (domains_.local_size() == 1 || domains_.count() == 1))
    work.outs.push_back(at(job.out.data, width, slice.begin));
}

const void* ChunkPipeline::operand(const Job& job, std::int64_t number, int local_rank, std::int64_t element) const {
  const std::int64_t width = size_of(job.in.element);
  if (local_rank == domains_.local_rank()) return at(job.in.data, width, element);
  if (!job.inputs.empty()) return at(job.inputs[static_cast<std::size_t>(local_rank)], width, element);
  return at(staging(local_rank, number), width, element - elements_of(job, number).begin);
}

bool ChunkPipeline::copy_out() {
  if (counts_.copied == counts_.begun || !all_reached(kReduced, counts_.copied + 1)) return false;
  const std::int64_t number = counts_.copied++;
  Job& job = job_of(number);
  const Range chunk = elements_of(job, number);
  const bool whole = job.parts.empty(), staged = !job.in_place && !job.by_rank;
  const Range wanted = whole ? Range{0, job.in.count} : job.parts[static_cast<std::size_t>(domains_.rank)];
  for (int s = 0; staged && (!whole || domains_.local_size() > 1) && s < domains_.slices(); ++s) {
    const int driver = s % domains_.local_size();
    if (whole && domains_.count() == 1 && driver == domains_.local_rank()) continue;  // the driver has written it
    const Range range = intersection(slice_of(chunk, s), wanted);
    if (range.size() == 0) continue;
    const comm::Buffer into = job.out.part(range.begin - wanted.begin, range.size());
    std::memcpy(into.data, at(staging(driver, number), size_of(job.out.element), range.begin - chunk.begin),
                static_cast<std::size_t>(into.bytes()));
  }
  raise(kCopied, counts_.copied);
  if (counts_.copied == job.first + job.chunks) {
    job.done = true;
    std::erase_if(jobs_, [](const auto& j) { return j->done; });
  }
  return true;
}

}  // namespace lockstep::parallel
