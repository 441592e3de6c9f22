#include "lockstep/parallel/step/step_memory.h"

#include <algorithm>

#include "lockstep/parallel/reduce/bucket_blocks.h"

namespace lockstep::parallel {

StepMemory::StepMemory(NodeMemory& memory, const plan::ParameterStore& store, const WorldLayout& world,
                       const Size& size)
    : domains_(memory.domains()),
      store_(store),
      world_(world),
      size_(size),
      squares_(size.squares ? static_cast<std::size_t>(BucketBlocks(store.buckets()).count()) : 0),
      norms_(size.norms ? 2 * static_cast<std::size_t>(BucketBlocks(store.buckets()).count()) : 0) {
  for (int rank : domains_.local()) offsets_.push_back(offsets_of(rank));
  windows_ = memory.segments(memory.own(mine().bytes));
  gradients_.resize(windows_.size());
  if (!store.buckets().empty()) {
    gradients_ = memory.segments({store.buckets()[0].gradients[0], slots_of(world_.rank) * store.bucket_bytes()});
  }
}

std::size_t StepMemory::slots_of(int rank) const {
  return static_cast<std::size_t>(world_.tree.slots_needed(world_.shards_of(rank)));
}

StepMemory::Offsets StepMemory::offsets_of(int rank) const {
  const int reductions = static_cast<int>(store_.buckets().size()) + 3;  // three for statistics, squares and norms
  const std::size_t slots = slots_of(rank);
  Offsets at{.slots = slots};
  at.control_flags = whole_lines(SharedFlags::bytes(BucketReducer::flags_for(reductions)));
  at.control_blocks = at.control_flags + whole_lines(SharedFlags::bytes(ControlBlock::kFlags));
  at.statistics = at.control_blocks + whole_lines(ControlBlock::bytes(world_, size_.control));
  at.squares = at.statistics + slots * whole_lines(size_.statistics * sizeof(double));
  at.norms = at.squares + slots * whole_lines((squares_ + size_.shard_sums) * sizeof(double));
  at.bytes = at.norms + slots * whole_lines(norms_ * sizeof(double));
  return at;
}

const StepMemory::Offsets& StepMemory::mine() const {
  return offsets_[static_cast<std::size_t>(domains_.local_rank())];
}

std::vector<std::span<std::byte>> StepMemory::rows(std::size_t offset) const {
  std::vector<std::span<std::byte>> all;
  for (std::span<std::byte> window : windows_) all.push_back(window.subspan(offset));
  return all;
}

std::vector<std::span<std::byte>> StepMemory::reduction_flags() const { return rows(0); }

std::vector<std::span<std::byte>> StepMemory::control_flags() const { return rows(mine().control_flags); }

std::span<std::byte> StepMemory::control_blocks() const {
  return windows_[0].subspan(mine().control_blocks, ControlBlock::bytes(world_, size_.control));
}

// Describes a bucket of f64 slots, which lie at `part` of the window of every rank of the domain.
BucketMemory StepMemory::doubles(std::size_t Offsets::*part, std::size_t count) const {
  BucketMemory bucket{.dtype = DType::F64, .elements = static_cast<std::int64_t>(count), .slots = {}};
  for (std::size_t l = 0; l < windows_.size(); ++l) {
    auto& slots = bucket.slots.emplace_back();
    for (std::size_t s = 0; s < slots_of(domains_.local()[l]); ++s)
      slots.push_back(windows_[l].data() + offsets_[l].*part + s * whole_lines(count * sizeof(double)));
  }
  return bucket;
}

std::vector<std::span<double>> StepMemory::slots(const BucketMemory& memory) const {
  std::vector<std::span<double>> all;
  for (void* slot : memory.slots[static_cast<std::size_t>(domains_.local_rank())])
    all.emplace_back(static_cast<double*>(slot), static_cast<std::size_t>(memory.elements));
  return all;
}

std::vector<std::span<double>> StepMemory::statistics() const { return slots(statistics_memory()); }

std::span<double> StepMemory::squares() const { return slots(squares_memory())[0].first(squares_); }
std::span<double> StepMemory::norms() const { return slots(norms_memory())[0]; }

std::vector<std::span<double>> StepMemory::shard_sums() const {
  std::vector<std::span<double>> all = slots(squares_memory());
  for (std::span<double>& slot : all) slot = slot.last(size_.shard_sums);
  return all;
}

void StepMemory::clear_squares() const {
  const std::span<std::byte> window = windows_[static_cast<std::size_t>(domains_.local_rank())];
  const auto clear = [&](std::size_t begin, std::size_t doubles_of_slot, std::size_t cleared) {
    for (std::size_t s = 0; s < mine().slots; ++s)
      std::ranges::fill(
          window.subspan(begin + s * whole_lines(doubles_of_slot * sizeof(double)), cleared * sizeof(double)),
          std::byte{0});
  };
  clear(mine().squares, squares_ + size_.shard_sums, squares_);
  clear(mine().norms, norms_, norms_);
}

BucketMemory StepMemory::gradient_memory(std::size_t number) const {
  const std::span<const plan::Bucket> buckets = store_.buckets();
  const plan::Bucket& b = buckets[number];
  BucketMemory bucket{.dtype = store_.options().dtype, .elements = b.elements, .slots = {}};
  for (std::size_t l = 0; l < gradients_.size(); ++l) {
    auto& slots = bucket.slots.emplace_back();
    for (std::size_t s = 0; s < slots_of(domains_.local()[l]); ++s)
      slots.push_back(gradient(number, static_cast<int>(l)) + s * store_.bucket_bytes());
  }
  if (squares_ > 0) bucket.squares = part_of_blocks(squares(), BucketBlocks(buckets).of(number));
  return bucket;
}

std::byte* StepMemory::gradient(std::size_t bucket, int local_rank) const {
  const std::vector<plan::Bucket>& buckets = store_.buckets();
  return gradients_[static_cast<std::size_t>(local_rank)].data() +
         (buckets[bucket].gradients[0] - buckets[0].gradients[0]);
}

// When this rank sums its slice of gradients in another rank's window, the pages count as memory of this rank too.
std::size_t StepMemory::bytes() const {
  std::size_t read = 0;
  const auto partials = world_.partials();
  for (int rank : domains_.local()) {
    if (rank == world_.rank) continue;
    read += partials[static_cast<std::size_t>(rank)].size() * store_.bucket_bytes() /
            static_cast<std::size_t>(domains_.local_size());
  }
  return mine().bytes + read;
}

}  // namespace lockstep::parallel
