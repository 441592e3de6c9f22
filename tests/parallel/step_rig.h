// The parts of a step for the ranks of one domain in one thread: shared memory is plain memory, and no message is sent.
// For tests that look at one part at a time and move each rank by hand.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/nn/init.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/parallel/step/step_timer.h"
#include "lockstep/parallel/update/step_update.h"
#include "lockstep/parallel/update/update_gate.h"

namespace lockstep::test {

class NoTransport : public parallel::Transport {
 public:
  MessageHandle send(comm::ConstBuffer, int, int) override { fail("test", "a message is sent, expected none"); }
  MessageHandle receive(comm::Buffer, int, int) override { fail("test", "a message is received, expected none"); }
  bool done(MessageHandle) override { return true; }
};

// Two buckets: bucket 0 holds "a" and "b", bucket 1 "c". Values are 1.
struct StepModel {
  Parameter a{.shape = Shape{1500}, .initialize = nn::constant(1)},
      b{.shape = Shape{40}, .initialize = nn::constant(1)}, c{.shape = Shape{700}, .initialize = nn::constant(1)};
  plan::ParameterStore store;
  explicit StepModel(int slots)
      : store({{"a", &a}, {"b", &b}, {"c", &c}}, {.gradient_slots = slots, .bucket_bytes = 4 * 1600}) {
    store.allocate({}, {&a, &b, &c});
  }
  float first_value(std::size_t bucket) { return *reinterpret_cast<float*>(store.buckets()[bucket].values); }
  void set_gradient(const Parameter& p, int slot, float value) {
    std::fill_n(static_cast<float*>(store.gradient(&p, slot)), p.shape.elements(), value);
  }
};

struct StepRigOptions {
  int ranks = 1;
  std::int64_t shards = 0;
  bool may_be_late = false;
  parallel::MemoryGuardOptions guard = {};
  parallel::StepUpdate::Options update = {};
};

// Memory that all ranks of the domain see.
class StepRigMemory {
 public:
  static constexpr std::size_t kRow = 64 * 64;
  static constexpr std::size_t kStatistics = 3;

  explicit StepRigMemory(const StepRigOptions& options) : options_(options) {
    for (int r = 0; r < options.ranks; ++r) {
      const parallel::WorldLayout world = layout(r);
      models_.push_back(std::make_unique<StepModel>(world.my_slots()));
      reduction_rows_.push_back(allocate_aligned(kRow));
      control_rows_.push_back(allocate_aligned(kRow));
      statistics_.emplace_back(static_cast<std::size_t>(world.my_slots()), std::vector<double>(kStatistics, 5));
      squares_.emplace_back(static_cast<std::size_t>(world.my_slots()), std::vector<double>(kBlocks));
    }
    blocks_.resize(parallel::ControlBlock::bytes(layout(0), parallel::StepSums::size(0)) / sizeof(std::uint64_t));
  }

  parallel::WorldLayout layout(int rank) const { return {rank, options_.ranks, options_.shards}; }
  parallel::Domains domains(int rank) const {
    parallel::Domains d{
        .rank = rank, .domain_of = std::vector<int>(static_cast<std::size_t>(options_.ranks)), .members = {{}}};
    for (int r = 0; r < options_.ranks; ++r) d.members[0].push_back(r);
    return d;
  }
  StepModel& model(int rank) { return *models_[static_cast<std::size_t>(rank)]; }
  parallel::SharedFlags reduction_flags(int rank) const { return {rows(reduction_rows_), rank}; }
  parallel::SharedFlags control_flags(int rank) const { return {rows(control_rows_), rank}; }
  std::span<std::byte> blocks() { return std::as_writable_bytes(std::span(blocks_)); }
  std::vector<std::span<double>> statistics(int rank) {
    return {statistics_[static_cast<std::size_t>(rank)].begin(), statistics_[static_cast<std::size_t>(rank)].end()};
  }
  std::span<double> squares(int rank) { return squares_[static_cast<std::size_t>(rank)][0]; }

  void add_buckets(parallel::BucketReducer& reducer, int rank, bool squares) {
    reducer.add_bucket(doubles(statistics_, kStatistics));
    for (std::size_t b = 0, block = 0; b < 2; ++b) {
      const std::int64_t elements = model(0).store.buckets()[b].elements;
      parallel::BucketMemory bucket{
          .dtype = DType::F32, .elements = elements, .slots = {}, .everywhere = options_.ranks > 1};
      for (auto& m : models_) {
        auto& slots = bucket.slots.emplace_back();
        for (std::byte* slot : m->store.buckets()[b].gradients) slots.push_back(slot);
      }
      const auto blocks =
          static_cast<std::size_t>((elements + parallel::BucketReducer::kBlock - 1) / parallel::BucketReducer::kBlock);
      if (squares) bucket.squares = this->squares(rank).subspan(block, blocks);
      block += blocks;
      reducer.add_bucket(std::move(bucket));
    }
    if (squares) reducer.add_bucket(doubles(squares_, kBlocks));
  }

 private:
  static constexpr std::size_t kBlocks = 3;                     // of both buckets
  using Slots = std::vector<std::vector<std::vector<double>>>;  // by rank, slot

  static std::vector<std::span<std::byte>> rows(const std::vector<AlignedBuffer>& memory) {
    std::vector<std::span<std::byte>> all;
    for (const AlignedBuffer& m : memory) all.emplace_back(m.get(), kRow);
    return all;
  }
  static parallel::BucketMemory doubles(Slots& memory, std::size_t elements) {
    parallel::BucketMemory bucket{.dtype = DType::F64, .elements = static_cast<std::int64_t>(elements), .slots = {}};
    for (auto& of_rank : memory) {
      auto& slots = bucket.slots.emplace_back();
      for (auto& slot : of_rank) slots.push_back(slot.data());
    }
    return bucket;
  }

  StepRigOptions options_;
  std::vector<std::unique_ptr<StepModel>> models_;
  std::vector<AlignedBuffer> reduction_rows_, control_rows_;
  std::vector<std::uint64_t> blocks_;
  Slots statistics_, squares_;
};

// One rank's parts of a step.
struct StepRank {
  StepRank(StepRigMemory& memory, int rank, const StepRigOptions& options)
      : model(memory.model(rank)),
        domains(memory.domains(rank)),
        updater(model.store, optim::sgd({}), {}),
        reduction_flags(memory.reduction_flags(rank)),
        control_flags(memory.control_flags(rank)),
        sums(transport, control_flags, memory.blocks(), domains, memory.layout(rank), 0),
        reducer(transport, reduction_flags, domains, memory.layout(rank), {.threads = false}),
        owned(model.store, reducer, domains, {.by_owner = options.ranks == 1}),
        guard(model.store,
              {{{{0, model.store.buckets()[0].elements}, true}}, {{{0, model.store.buckets()[1].elements}, true}}},
              options.guard),
        reductions(model.store, reducer, memory.layout(rank),
                   {.statistics = memory.statistics(rank), .squares = options.update.gradient.needs_squares()}),
        driver([this] {
          if (meanwhile) meanwhile();
          const bool moved = sums.progress();
          return reducer.progress() || moved;
        }),
        update({driver, sums, guard, reductions}, {model.store, updater, reducer, owned, guard},
               {.squares = memory.squares(rank)}, options.update),
        gate(update, timer, nullptr, options.may_be_late) {
    memory.add_buckets(reducer, rank, options.update.gradient.needs_squares());
  }

  void begin(std::int64_t number = 1, std::uint64_t position = 0) {
    const parallel::StepStart start{.samples = 10, .position = position, .learning_rate = 0.5, .update = number};
    sums.begin(start);
    timer.begin(reducer.traffic());
    update.begin(start);
    reductions.begin_step();
  }
  // The forward pass of the last shard is through.
  void end_forward(double weight = 1, double loss = 0) {
    sums.shard()[parallel::kWeightSum] = sums.shard()[parallel::kSampleSum] = weight;
    sums.shard()[parallel::kLossSum] = loss;
    sums.count_shard();
    update.open();
    sums.tell(guard.look(update.state().update.count));
    sums.end_shard(timer.seconds());
    reductions.end_statistics();
  }
  void retire(const Parameter& p, float gradient) {
    model.set_gradient(p, reductions.slot(), gradient);
    reductions.retire(&p);
  }
  void retire_all(float gradient) {
    for (const Parameter* p : {&model.c, &model.b, &model.a}) retire(*p, gradient);
  }
  void finish() {
    gate.wait_until([this] {
      return update.state().sums_known && update.state().decided &&
             (gate.is_late_allowed() || !update.buckets().late()) && reducer.reduced(parallel::kStatisticsReduction);
    });
    update.end();
    guard.end_step(update.state().applies());
  }

  StepModel& model;
  parallel::Domains domains;
  NoTransport transport;
  parallel::Updater updater;
  parallel::SharedFlags reduction_flags, control_flags;
  parallel::StepSums sums;
  parallel::BucketReducer reducer;
  parallel::OwnedParts owned;
  parallel::MemoryGuard guard;
  parallel::ReductionScheduler reductions;
  std::function<void()> meanwhile;  // while this rank drives communication: what other ranks do
  parallel::ProgressDriver driver;
  parallel::StepUpdate update;
  parallel::StepTimer timer;
  parallel::UpdateGate gate;
};

struct StepRig {
  explicit StepRig(const StepRigOptions& options = {}) : memory(options) {
    for (int r = 0; r < options.ranks; ++r) ranks.emplace_back(memory, r, options);
  }
  StepRank& operator[](int rank) { return ranks[static_cast<std::size_t>(rank)]; }

  StepRigMemory memory;
  std::deque<StepRank> ranks;
};

}  // namespace lockstep::test
