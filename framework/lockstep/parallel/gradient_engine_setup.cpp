// The part of GradientEngine that lays its memory out, makes its parts, and ends them.
#include <algorithm>
#include <exception>
#include <utility>

#include "lockstep/comm/environment.h"
#include "lockstep/core/log.h"
#include "lockstep/parallel/gradient_engine.h"

namespace lockstep {
namespace {

std::size_t blocks_of(std::int64_t elements) {
  return static_cast<std::size_t>((elements + BucketReducer::kBlock - 1) / BucketReducer::kBlock);
}

}  // namespace

// Where things lie in the memory that a rank shows to its domain. Parts that all ranks have alike come first, so that
// each finds the others' parts.
struct GradientEngine::Placement {
  std::size_t gradient_flags = 0, control_flags, control, statistics, squares, bytes;

  Placement(const WorldLayout& world, int rank, const ControlSize& control_size, int buckets,
            std::size_t statistic_bytes, std::size_t square_bytes) {
    const auto slots = static_cast<std::size_t>(world.tree.slots_needed(world.leaves_of(rank)));
    control_flags = whole_lines(SharedFlags::bytes(BucketReducer::flags_for(buckets)));
    control = control_flags + whole_lines(SharedFlags::bytes(ControlBlock::kFlags));
    statistics = control + whole_lines(ControlBlock::bytes(world, control_size));
    squares = statistics + slots * whole_lines(statistic_bytes);
    bytes = squares + slots * whole_lines(square_bytes);
  }
};

// By local rank: its memory, and where things lie in it.
struct GradientEngine::Shown {
  std::vector<Placement> placements;
  std::vector<std::span<std::byte>> segments;

  std::vector<std::span<std::byte>> from(std::size_t offset) const {
    std::vector<std::span<std::byte>> found;
    for (std::span<std::byte> segment : segments) found.push_back(segment.subspan(offset));
    return found;
  }
};

GradientEngine::GradientEngine(const comm::Communicator& comm, const WorldLayout& world, NodeMemory& memory,
                               ParameterStore& store, Updater& updater, const EngineOptions& options)
    : gradient_comm_(comm.duplicate()),
      control_comm_(comm.duplicate()),
      world_(world),
      walk_(world),
      memory_(memory),
      store_(store),
      updater_(updater),
      options_(options),
      owners_update_(memory.shares() || memory.domains().local_size() == 1),
      gradient_transport_(gradient_comm_),
      control_transport_(control_comm_),
      heartbeat_(options.heartbeat != nullptr ? *options.heartbeat : own_heartbeat_) {
  const Domains& domains = memory.domains();
  std::size_t blocks = 0;
  if (options_.clip_norm > 0 || options_.guards.look_at_gradient()) {
    for (const Bucket& b : store.buckets()) blocks += blocks_of(b.elements);
  }
  const ControlSize control_size{kFirstCount + options.counts, kControlWords};
  const int reductions = static_cast<int>(store.buckets().size()) + 2;
  const std::size_t statistic_bytes = options.statistics * sizeof(double), square_bytes = blocks * sizeof(double);
  Shown shown;
  for (int rank : domains.local())
    shown.placements.emplace_back(world, rank, control_size, reductions, statistic_bytes, square_bytes);
  const Placement& mine = shown.placements[static_cast<std::size_t>(domains.local_rank())];
  own_bytes_ = mine.bytes;
  const std::span<std::byte> own = memory.own(mine.bytes);
  shown.segments = memory.segments(own);
  make_channels(shown, control_size);

  BucketMemory statistics = doubles(shown, &Placement::statistics, statistic_bytes);
  for (void* slot : statistics.slots[static_cast<std::size_t>(domains.local_rank())])
    statistics_.emplace_back(static_cast<double*>(slot), options.statistics);
  reducer_->add_bucket(std::move(statistics));
  BucketMemory squares = doubles(shown, &Placement::squares, square_bytes);
  squares_ = {static_cast<double*>(squares.slots[static_cast<std::size_t>(domains.local_rank())][0]), blocks};
  squares_memory_ = own.subspan(mine.squares);
  add_gradients();
  if (blocks > 0) squares_bucket_ = reducer_->add_bucket(std::move(squares));

  awaited_.resize(store.buckets().size());
  complete_.resize(store.buckets().size());
  updates_.resize(store.buckets().size(), Update::Done);
  updated_ = updates_.size();
  if (BucketHook* hook = options.reduction.hook) {
    std::vector<std::int64_t> elements;
    for (const Bucket& b : store.buckets()) elements.push_back(b.elements);
    hook->begin(comm, elements);
  }
  make_guards();
  drive_by_thread(options.thread);
}

void GradientEngine::make_channels(const Shown& shown, const ControlSize& size) {
  const Domains& domains = memory_.domains();
  const Placement& mine = shown.placements[static_cast<std::size_t>(domains.local_rank())];
  gradient_flags_ = std::make_unique<SharedFlags>(shown.from(mine.gradient_flags), domains.local_rank());
  control_flags_ = std::make_unique<SharedFlags>(shown.from(mine.control_flags), domains.local_rank());
  const std::span<std::byte> blocks = shown.segments[0].subspan(mine.control, ControlBlock::bytes(world_, size));
  control_ = std::make_unique<ControlBlock>(control_transport_, *control_flags_, blocks, domains, world_, size);
  reducer_ =
      std::make_unique<BucketReducer>(gradient_transport_, *gradient_flags_, domains, world_, options_.reduction);
}

// A bucket of the f64 slots that every rank has at `part`, of so many bytes each.
BucketMemory GradientEngine::doubles(const Shown& shown, std::size_t Placement::*part, std::size_t bytes) const {
  const Domains& domains = memory_.domains();
  BucketMemory bucket{.dtype = DType::F64, .elements = static_cast<std::int64_t>(bytes / sizeof(double)), .slots = {}};
  for (std::size_t l = 0; l < shown.segments.size(); ++l) {
    auto& slots = bucket.slots.emplace_back();
    for (int s = 0; s < world_.tree.slots_needed(world_.leaves_of(domains.local()[l])); ++s) {
      slots.push_back(shown.segments[l].data() + shown.placements[l].*part +
                      static_cast<std::size_t>(s) * whole_lines(bytes));
    }
  }
  return bucket;
}

void GradientEngine::add_gradients() {
  const Domains& domains = memory_.domains();
  const std::vector<Bucket>& buckets = store_.buckets();
  gradients_.resize(static_cast<std::size_t>(domains.local_size()));
  const auto slots = static_cast<std::size_t>(world_.my_slots());
  if (!buckets.empty()) gradients_ = memory_.segments({buckets[0].gradients[0], slots * store_.bucket_bytes()});
  std::size_t offset = 0, block = 0;
  for (const Bucket& b : buckets) {
    BucketMemory bucket{
        .dtype = store_.options().dtype, .elements = b.elements, .slots = {}, .everywhere = !owners_update_};
    for (std::size_t l = 0; l < gradients_.size(); ++l) {
      auto& of_rank = bucket.slots.emplace_back();
      for (int s = 0; s < world_.tree.slots_needed(world_.leaves_of(domains.local()[l])); ++s)
        of_rank.push_back(gradients_[l].data() + static_cast<std::size_t>(s) * store_.bucket_bytes() + offset);
    }
    if (options_.reduction.hook != nullptr) bucket.hooked = static_cast<int>(&b - buckets.data());
    if (shards_optimizer()) bucket.values = b.values;
    if (!squares_.empty()) bucket.squares = squares_.subspan(block, blocks_of(b.elements));
    reducer_->add_bucket(std::move(bucket));
    offset += static_cast<std::size_t>(b.elements) * size_of(store_.options().dtype);
    block += blocks_of(b.elements);
  }
}

// The other domains wait for what this one still has to send. After MPI_Finalize the others' memory is gone.
void GradientEngine::leave() {
  if (std::exchange(left_, true) || !comm::Environment::active()) return;
  bool failing = std::uncaught_exceptions() > 0 || gradient_comm_.poisoned();
  try {
    if (late() && !failing) settle();
  } catch (const std::exception& error) {
    failing = true;
    log()->error("[gradients] the last update is not complete: {}", error.what());
  }
  gradient_flags_->leave(world_.rank, made_, failing);
  control_flags_->leave(world_.rank, made_, failing);
  memory_.leave(made_, failing);
}

GradientEngine::~GradientEngine() {
  leave();
  thread_.reset();
  if (options_.reduction.hook != nullptr) options_.reduction.hook->end();
}

// Pages of the others' windows become this rank's too when it sums its slice of their gradients.
std::size_t GradientEngine::bytes() const {
  const Domains& domains = memory_.domains();
  std::size_t read = 0;
  for (std::size_t l = 0; l < gradients_.size(); ++l) {
    const int rank = domains.local()[l];
    if (rank == world_.rank) continue;
    read += world_.partials()[static_cast<std::size_t>(rank)].size() * store_.bucket_bytes() /
            static_cast<std::size_t>(domains.local_size());
  }
  return own_bytes_ + reducer_->bytes() + read;
}

}  // namespace lockstep
