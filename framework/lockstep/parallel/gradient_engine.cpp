#include "lockstep/parallel/gradient_engine.h"

#include <exception>
#include <utility>

#include "lockstep/comm/environment.h"
#include "lockstep/core/backoff.h"
#include "lockstep/core/log.h"
#include "lockstep/parallel/engine_setup.h"
#include "lockstep/parallel/update/average_exchange.h"

namespace lockstep::parallel {
GradientEngine::GradientEngine(const comm::Communicator& comm, const WorldLayout& world, NodeMemory& memory,
                               plan::ParameterStore& store, Updater& updater, const EngineOptions& options)
    : memory_(memory, store, world, memory_size(options, updater)),
      channels_(comm, memory, {.reduction = memory_.reduction_flags(), .control = memory_.control_flags()}),
      sums_(channels_.control().transport, channels_.control().flags, memory_.control_blocks(), memory.domains(), world,
            options.sums, options.between),
      reducer_(channels_.gradients().transport, channels_.gradients().flags, memory.domains(), world,
               options.reduction),
      owned_(store,
             with_buckets(reducer_, memory_, store, ownership(memory, options), options.reduction.hook != nullptr),
             memory.domains(), ownership(memory, options)),
      guard_(store, checked_parts(owned_, store.buckets().size()),
             guard_options(memory, owned_.ownership(), updater, options)),
      reductions_(store, reducer_, world,
                  {.statistics = memory_.statistics(),
                   .squares = !memory_.squares().empty(),
                   .noise = noise_sums(memory_, options),
                   .wire = options.reduction.wire}),
      average_(store, {.active = updates_by_local_gradients(options), .local_steps = options.local_steps}),
      driver_([&sums = sums_, &reducer = reducer_] {
        const bool moved = sums.progress();
        return reducer.progress() || moved;
      }),
      update_({driver_, sums_, guard_, reductions_}, {store, updater, reducer_, owned_, guard_},
              {.squares = memory_.squares(),
               .noise = options.noise ? std::span<const double>(memory_.shard_sums()[0]) : std::span<const double>(),
               .norms = memory_.norms()},
              {.hold_loss = options.guards.hold_loss,
               .local_weight = average_.is_active(),
               .gradient = decision_options(options, updater)}),
      gate_(update_, timer_, options.heartbeat,
            options.late_updates && memory.domains().count() > 1 && options.reduction.hook == nullptr) {
  if (options.reduction.hook != nullptr) {
    std::vector<std::int64_t> elements;
    for (const plan::Bucket& b : store.buckets()) elements.push_back(b.elements);
    channels_.begin_hook(comm, *options.reduction.hook, elements);
  }
  drive_by_thread(options.thread);
}

GradientEngine::~GradientEngine() { leave(); }

// Completes the last update, as other domains wait for messages of this one. After MPI_Finalize the memory of other
// ranks does not exist any more.
void GradientEngine::leave() {
  if (channels_.has_left()) return;
  bool failing = std::uncaught_exceptions() > 0 || gradient_comm().poisoned();
  try {
    if (late() && !failing && comm::Environment::active()) settle();
  } catch (const std::exception& error) {
    failing = true;
    log()->error("[gradients] the last update is not complete: {}", error.what());
  }
  channels_.leave(update_.ended(), failing);
}

// --- calls of a step

void GradientEngine::begin_step(const StepStart& start) {
  sums_.begin(start);
  timer_.begin(reducer_.traffic());
  update_.begin(start);
  reductions_.begin_step();
}

void GradientEngine::sums_ready() {
  const bool last = reductions_.is_last_shard();
  const double samples = sums_.shard()[kSampleSum], weight = sums_.shard()[kWeightSum];
  sums_.count_shard();
  if (last) {
    settle();  // the forward passes have read all values, so the last step is complete
    update_.open();
    sums_.tell(guard_.look(update_.state().update.count));
    memory_.clear_squares();
  }
  sums_.end_shard(timer_.seconds());
  reductions_.end_statistics(samples, weight);
  if (last) driver_.wake();
}

void GradientEngine::zero_gradients() {
  for (std::size_t b = 0; b < update_.buckets().buckets(); ++b) {
    gate_.pass(static_cast<int>(b));
    gate_.heartbeat().touch_bucket(static_cast<int>(b));
    reductions_.zero(b);
  }
}

void GradientEngine::retired(const Parameter* parameter) {
  gate_.heartbeat().touch_bucket(reductions_.retire(parameter));
}

void GradientEngine::poll() {
  if (update_.moves()) update_.advance();
}

void GradientEngine::finish_step() {
  const auto since = StepTimer::Clock::now();
  gate_.wait_until([this] {
    const StepState& step = update_.state();
    return step.sums_known && step.decided && (gate_.is_late_allowed() || !late()) && update_.is_further_updated() &&
           reducer_.reduced(kStatisticsReduction);
  });
  update_.end();
  if (!late()) driver_.sleep();
  timer_.end(since, reducer_.traffic(), sums_.slowest());
  const StepState& step = update_.state();
  if (!step.applies() && reducer_.has_hook()) {
    settle();
    reducer_.refuse_hooked();
  }
  guard_.end_step(step.applies());
  if (step.applies() && average_.after_update(step.update.count)) average_replicas();
}

// --- between steps

void GradientEngine::progress() {
  channels_.check_peers();
  update_.advance();
}

void GradientEngine::drive_by_thread(bool thread) {
  if (thread == driver_.has_thread()) return;
  settle();
  driver_.use_thread(false);
  reducer_.allow_threads(!thread);
  driver_.use_thread(thread);
}

void GradientEngine::settle() {
  gate_.pass_all();
  if (!update_.state().posted) driver_.sleep();
}

void GradientEngine::fence() {
  settle();
  gate_.heartbeat().wait();
  channels_.fence();
  gate_.heartbeat().beat();
}

void GradientEngine::meet() {
  comm::Request all = gradient_comm().ibarrier();
  for (Backoff wait; !all.test(); wait.pause()) {
    gate_.heartbeat().wait();
    progress();
  }
  gate_.heartbeat().beat();
}

void GradientEngine::agree(std::uint64_t word) {
  sums_.post(word);
  driver_.wake();
  try {
    for (Backoff wait; !sums_.complete(); wait.pause()) {
      gate_.heartbeat().wait();
      progress();
    }
  } catch (const Error&) {
    if (sums_.complete()) sums_.check_between();  // where words differ, each rank reports this, not a peer's failure
    throw;
  }
  gate_.heartbeat().beat();
  if (!late()) driver_.sleep();
  sums_.check_between();
}

// Ranks write the averages of others here, so checksums are forgotten: the next MemoryGuard::look() takes the present
// content as right, and does not show damage between the last look and this one. Copies of replicas are not compared.
void GradientEngine::average_replicas() {
  if (!average_.replicas_differ()) return;
  meet();
  average_.run(gradient_comm());
  guard_.forget();
}

void GradientEngine::collect_gradients() {
  settle();
  if (!owned_.ownership().by_owner) return;  // gradients are whole on every rank
  fence();
  if (owned_.ownership().across_domains) meet();
  owned_.collect_gradients(gradient_comm(), memory_);
  fence();
}

void GradientEngine::collect_states() {
  if (!owned_.ownership().across_domains) return;
  meet();
  owned_.collect_states(gradient_comm());
}

void GradientEngine::add_to_average(double weight) {
  average_replicas();
  fence();
  guard_.before_change();
  AverageExchange(owned_).add(weight);
  guard_.after_change();
  fence();
}

void GradientEngine::swap_average(bool away) {
  fence();
  if (away) guard_.begin_detour();
  if (owned_.ownership().across_domains) meet();
  AverageExchange(owned_).swap(gradient_comm());
  fence();
}

std::vector<MemoryDamage> GradientEngine::examine(bool repair) {
  fence();
  meet();
  std::vector<MemoryDamage> found = guard_.examine(gradient_comm(), sums_, repair);
  fence();
  return found;
}

bool GradientEngine::intact() {
  if (!guard_.verifies()) return true;
  settle();  // before it, some buckets are not updated and their checksums are not recorded
  const bool intact = guard_.is_intact();
  meet();
  return gradient_comm().allreduce(std::int32_t{intact}, comm::ReduceOp::Min) == 1;
}

void GradientEngine::note_in(Trace* trace) {
  settle();
  timer_.note_in(trace);
  update_.buckets().note_in(trace);
  reducer_.note_in(trace);
}

}  // namespace lockstep::parallel
