#include "bindings/c/training.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <span>

#include "bindings/c/arrays.h"
#include "bindings/c/collective_call.h"
#include "bindings/c/structs.h"
#include "bindings/c/training_sums.h"
#include "lockstep/checkpoint/state.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/core/finite.h"
#include "lockstep/core/random.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep::bindings {
namespace {

constexpr std::uint64_t kStop = 1;  // a request: the callback of a rank asks for an end

train::TrainerOptions options_of(const lockstep_trainer_options& o, const DescribedModel& model) {
  train::TrainerOptions options{.global_batch = o.batch,
                                .precision = model.dtype(),
                                .seed = o.seed,
                                .rule = rule_of(o.optimizer),
                                .update = {.weight_decay = o.weight_decay},
                                .clip_norm = o.clip_norm};
  if (o.messages != 0) options.parallel.path = train::ParallelOptions::Path::Messages;
  if (o.skip_not_finite != 0) options.guards.action = train::GuardAction::Skip;
  return options;
}

void check_options(const lockstep_trainer_options& o) {
  const auto not_negative = [](double value) { return std::isfinite(value) && value >= 0; };
  check(o.batch > 0, "trainer", "batch is {}, expected the number of samples of a step over all ranks", o.batch);
  check(not_negative(o.weight_decay), "trainer", "weight_decay is {}, expected at least 0", o.weight_decay);
  check(not_negative(o.clip_norm), "trainer", "clip_norm is {}, expected at least 0", o.clip_norm);
  check(o.memory >= 0, "trainer", "memory is {}, expected at least 0", o.memory);
}

std::size_t row_bytes(const Shape& shape, DType type) {
  return static_cast<std::size_t>(shape.elements()) * size_of(type);
}

SampleMemory memory_of(const DescribedModel& model, std::int64_t capacity, std::uint64_t seed) {
  const std::size_t input = row_bytes(model.input(), model.dtype());
  const std::size_t target = row_bytes(model.target(), model.target_type());
  try {
    return SampleMemory(capacity, input, target, seed);
  } catch (const std::bad_alloc&) {
    throw CodedError(LOCKSTEP_ERROR_MEMORY,
                     formatted("[trainer] memory is {} samples of {} bytes each, which the system refused; expected "
                               "fewer samples",
                               capacity, input + target));
  }
}

// Memory of samples must hold none that would spoil every later step that draws it.
void check_finite(const Tensor& tensor, const char* name) {
  const std::int64_t at = first_nonfinite(tensor.raw(), tensor.dtype(), tensor.elements());
  if (at < 0) return;
  throw CodedError(LOCKSTEP_ERROR_NOT_FINITE,
                   formatted("[array] '{}': element {} of sample {} is NaN or infinite; no sample of this call is "
                             "remembered",
                             name, at % std::max<std::int64_t>(tensor.shape().tail().elements(), 1),
                             at / std::max<std::int64_t>(tensor.shape().tail().elements(), 1)));
}

std::string hash_of(const std::vector<io::NamedTensor>& tensors) {
  std::uint64_t hash = 0;
  for (const io::NamedTensor& each : tensors)
    hash = mix(hash, hash_name({reinterpret_cast<const char*>(each.tensor.raw()), each.tensor.bytes()}));
  return formatted("{}", hash);
}

// Classes outside the network's range would be found in the middle of a step, on one rank alone.
void check_classes(const Tensor& targets, std::int64_t classes) {
  constexpr std::int32_t kIgnored = -100;  // cross_entropy()'s
  for (const std::int32_t label : targets.data<std::int32_t>()) {
    check(label == kIgnored || (label >= 0 && label < classes), "array",
          "'target': a class is {}, expected 0 to {}, or {} for a sample that does not count", label, classes - 1,
          kIgnored);
  }
}

}  // namespace

Training::Training(comm::Communicator comm, std::shared_ptr<const DescribedModel> model,
                   const std::vector<io::NamedTensor>& weights, const lockstep_trainer_options& options)
    : comm_(std::move(comm)),
      model_(std::move(model)),
      memory_(0, row_bytes(model_->input(), model_->dtype()), row_bytes(model_->target(), model_->target_type()), 0) {
  std::optional<train::TrainerOptions> made;
  std::string settings;  // of the optimizer
  together(comm_, LOCKSTEP_ERROR_ARGUMENT, [&] {
    check_options(options);
    made = options_of(options, *model_);
    optimizer_ = made->rule->name();
    settings = made->rule->settings();
    memory_ = memory_of(*model_, options.memory, mix(options.seed, static_cast<std::uint64_t>(comm_.rank())));
  });
  require_same(comm_, "the description of the model", model_->text());
  require_same(
      comm_, "the options of the trainer",
      formatted("batch {}, optimizer {} ({}), weight decay {}, clip norm {}, seed {}, skip_not_finite {}, messages {}",
                options.batch, optimizer_, settings, options.weight_decay, options.clip_norm, options.seed,
                options.skip_not_finite, options.messages));
  require_same(comm_, "the weights of the model", weights.empty() ? "random" : hash_of(weights));
  set_fault_rank(comm_.rank());
  const auto trace = [m = model_.get()](const plan::Inputs& in) { return m->trace(in); };
  trainer_.emplace(comm_, model_->module(), trace, model_->fields(), std::move(*made));
  if (!weights.empty()) {
    std::vector<io::NamedTensor> named;
    for (const io::NamedTensor& each : weights)
      named.push_back({formatted("model/{}", each.name), each.tensor.clone()});
    trainer_->load(named, 0, true);
  }
  trainer_->listen([this] { return callback_.tells_others ? kStop : 0; });
}

void Training::check_rate(double rate) {
  check(std::isfinite(rate) && rate >= 0, "trainer", "the learning rate is {}, expected a finite number, at least 0",
        rate);
}

double Training::seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What the callback of an earlier step has asked for is told to the other ranks by the next step, and is no wish of
// this call.
void Training::begin_steps() {
  callback_.tells_others = callback_.tells_others || callback_.asked_to_stop;
  callback_.asked_to_stop = false;
}

void Training::require_usable() const {
  if (unusable_.empty()) return;
  throw CodedError(LOCKSTEP_ERROR_UNUSABLE,
                   formatted("[trainer] an earlier error has made this trainer unusable; free it, and make another one "
                             "from the last saved state. The error was: {}",
                             unusable_));
}

// A batch of this rank's own samples, as of a stream. Ids, which random numbers of dropout follow, differ on all ranks.
data::Batch Training::batch(Tensor inputs, Tensor targets) const {
  data::Batch batch;
  const std::int64_t samples = inputs.shape()[0];
  const std::int64_t first = trainer_->updates() * (std::int64_t{1} << 24);
  for (std::int64_t i = 0; i < samples; ++i) batch.step.samples.push_back((first + i) * comm_.size() + comm_.rank());
  batch.step.global_size = -1;
  batch.step.local = {0, samples};
  batch.names = {kInput, kTarget};
  batch.fields.push_back(std::move(inputs));
  batch.fields.push_back(std::move(targets));
  return batch;
}

data::Batch Training::batch_of(const lockstep_array* input, const lockstep_array* target) const {
  if (input == nullptr && target == nullptr) {
    return batch(Tensor(model_->input().batched(0), model_->dtype()),
                 Tensor(model_->target().batched(0), model_->target_type()));
  }
  const View in = view_of(input, "input", model_->input()), out = view_of(target, "target", model_->target());
  check_samples(in, out);
  Tensor targets = tensor_of(out, model_->target_type());
  if (model_->has_classes()) check_classes(targets, model_->output()[0]);
  return batch(tensor_of(in, model_->dtype()), std::move(targets));
}

data::Batch Training::drawn(std::int64_t samples) {
  const std::int64_t n = memory_.held() > 0 ? samples : 0;
  Tensor inputs(model_->input().batched(n), model_->dtype());
  Tensor targets(model_->target().batched(n), model_->target_type());
  if (n > 0) memory_.draw(inputs, targets);
  return batch(std::move(inputs), std::move(targets));
}

lockstep_result Training::result_of(const train::Totals& totals, std::int64_t own, Clock::time_point begin) const {
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  result.loss = totals.loss;
  result.seconds = seconds_since(begin);
  result.samples = totals.samples;
  result.own_samples = own;
  result.updates = trainer_->updates();
  result.skipped = trainer_->skipped();
  const bool asked = callback_.asked_to_stop || callback_.tells_others;
  result.stop = (trainer_->requests() & kStop) != 0 || asked ? 1 : 0;
  return result;
}

// One step of all ranks, whose arguments have been checked on all of them.
lockstep_result Training::run_step(const data::Batch& batch, double rate, Clock::time_point begin) {
  const train::Totals* totals = nullptr;
  communicate([&] { totals = &trainer_->step(batch, rate); });
  callback_.tells_others = false;
  metrics_ = totals->metrics;
  lockstep_result result = result_of(*totals, batch.samples(), begin);
  result.steps = totals->samples > 0 ? 1 : 0;
  return result;
}

// Calls the program's function after a step, and returns its failure: the step itself is complete.
Failure Training::call_back(lockstep_result& result) {
  if (callback_.function == nullptr) return {};
  try {
    if (callback_.function(&result, callback_.user) != 0) callback_.asked_to_stop = true;
  } catch (const std::exception& error) {
    return {LOCKSTEP_ERROR_CALLBACK, formatted("[callback] after update {}: {}", result.updates, error.what())};
  } catch (...) {
    return {LOCKSTEP_ERROR_CALLBACK, formatted("[callback] after update {}: an exception", result.updates)};
  }
  if (callback_.asked_to_stop) result.stop = 1;
  return {};
}

void Training::step(const lockstep_array* input, const lockstep_array* target, double rate, lockstep_result* result) {
  const auto begin = Clock::now();
  require_usable();
  data::Batch mine;
  open_call(comm_, {Call::Step, rate}, [&] {
    check_caller(result, kResult);
    check_rate(rate);
    mine = batch_of(input, target);
  });
  begin_steps();
  lockstep_result done = run_step(mine, rate, begin);
  const Failure failure = call_back(done);
  if (failure.code != LOCKSTEP_OK) throw CodedError(failure.code, failure.text);
  to_caller(done, result, kResult);
}

void Training::evaluate(const lockstep_array* input, const lockstep_array* target, lockstep_result* result) {
  const auto begin = Clock::now();
  require_usable();
  data::Batch mine;
  EvaluationSums sums;
  open_call(comm_, {Call::Evaluate}, [&] {
    check_caller(result, kResult);
    mine = batch_of(input, target);
    sums = evaluation_sums(trainer_->model(), mine, std::max<std::int64_t>(trainer_->options().global_batch, 1));
  });
  train::Totals totals;
  communicate([&] { totals = add_up(comm_, sums); });
  metrics_ = totals.metrics;
  if (!std::isfinite(totals.loss)) {
    throw CodedError(
        LOCKSTEP_ERROR_NOT_FINITE,
        formatted("[evaluation] the loss is {}: an input, a target or a weight is not finite", totals.loss));
  }
  to_caller(result_of(totals, mine.samples(), begin), result, kResult);
}

double Training::metric(const std::string& name) const {
  std::string known;
  for (const train::MetricResult& metric : metrics_) {
    if (metric.name == name && metric.results.size() == 1) return metric.results[0];
    known = known.empty() ? metric.name : formatted("{}, {}", known, metric.name);
  }
  throw CodedError(LOCKSTEP_ERROR_ARGUMENT,
                   formatted("[trainer] no result of a metric '{}', the last call has: {}", name, known));
}

Inference& Training::inference() {
  require_usable();
  if (!inference_) inference_.emplace(model_);
  if (inferred_update_ != trainer_->updates()) {
    if (comm_.size() > 1 && !comm::Environment::active()) {
      throw CodedError(LOCKSTEP_ERROR_OTHER,
                       "[trainer] MPI was finalised before this call, and the weights that the ranks share are gone; "
                       "expected the call before MPI_Finalize, or a model of a saved file");
    }
    inference_->load(checkpoint::weights(trainer_->model().parameters()));
    inferred_update_ = trainer_->updates();
  }
  return *inference_;
}

void Training::remember(const lockstep_array* input, const lockstep_array* target) {
  check(memory_.capacity() > 0, "trainer", "the trainer has no memory of samples: set memory in its options");
  const data::Batch mine = batch_of(input, target);
  check_finite(mine.at(kInput), kInput);
  check_finite(mine.at(kTarget), kTarget);
  memory_.offer(mine.at(kInput), mine.at(kTarget));
}

void Training::on_step(lockstep_step_function function, void* user) {
  callback_.function = function;
  callback_.user = user;
}

}  // namespace lockstep::bindings
