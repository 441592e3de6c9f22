#include "lockstep/parallel/gradient_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "lockstep/core/backoff.h"

namespace lockstep {
namespace {

constexpr int kStatisticsBucket = 0;
// What a rank sent before it left is there by then.
constexpr std::chrono::seconds kOnTheWay{10};
constexpr std::int64_t kLooks = 1000;

double seconds_since(Trace::Clock::time_point begin) {
  return std::chrono::duration<double>(Trace::Clock::now() - begin).count();
}

}  // namespace

void GradientEngine::fail() {
  gradient_flags_->fail();
  control_flags_->fail();
  memory_.fail();
}

// --- a step

void GradientEngine::begin_step(const StepStart& start) {
  control_->words()[kStepWord] = static_cast<std::uint64_t>(start.update);
  control_->words()[kSamplesWord] = start.samples;
  control_->words()[kPositionWord] = start.position;
  control_->words()[kRateWord] = std::bit_cast<std::uint64_t>(start.learning_rate);
  control_->words()[kDriverWord] = start.driver;
  control_->words()[kRequestWord] = start.requests;
  control_->begin();
  walk_.begin();
  begun_ = Trace::Clock::now();
  times_ = {};
  traffic_before_ = reducer_->traffic();
  next_update_ = {.learning_rate = start.learning_rate, .gradient_scale = 0, .count = start.update};
  local_weight_ = local_loss_ = 0;
  begin_leaf();
}

// The forward passes are through, so have read all values: nothing of the last step is open.
void GradientEngine::open_updates() {
  settle();
  update_ = next_update_;
  verdict_ = StepVerdict::Apply;
  sums_known_ = squares_started_ = decided_ = false;
  std::ranges::fill(updates_, Update::Due);
  updated_ = 0;
  complete_.assign(complete_.size(), false);
  next_ = 0;
  posted_ = true;
}

void GradientEngine::begin_leaf() {
  std::ranges::fill(leaf_statistics(), 0.0);
  for (std::size_t b = 0; b < awaited_.size(); ++b) awaited_[b] = static_cast<int>(store_.buckets()[b].entries.size());
}

void GradientEngine::end_leaf() {
  walk_.next();
  if (!walk_.done()) begin_leaf();
}

void GradientEngine::sums_ready() {
  local_weight_ += control_->leaf()[kWeightSum];
  local_loss_ += control_->leaf()[kLossSum];
  if (walk_.last()) {
    open_updates();
    look_at_memory();
  }
  control_->words()[kTimeWord] = static_cast<std::uint64_t>(1e9 * seconds_since(begun_));
  control_->end_leaf();
  walk_.join([this](int from, int into) {
    add_into<double>(static_cast<std::int64_t>(options_.statistics), statistics_[static_cast<std::size_t>(from)].data(),
                     statistics_[static_cast<std::size_t>(into)].data());
  });
  if (!walk_.last()) return;
  // An owner writes its own into slot 0, so the sum is of one number each; other slots hold sums of the last step.
  std::ranges::fill(squares_memory_, std::byte{0});
  reducer_->start(kStatisticsBucket);
  if (thread_) thread_->wake();
}

bool GradientEngine::ready(int bucket) const {
  const auto b = static_cast<std::size_t>(bucket);
  return updates_[b] == Update::Done && reducer_->available(reduction_of(b));
}

void GradientEngine::needs(int bucket) {
  if (posted_ || ready(bucket)) return;
  heartbeat_.touch_bucket(bucket);
  const auto since = Trace::Clock::now();
  wait_until([&] { return ready(bucket); });
  times_.earlier += seconds_since(since);
  if (trace_ != nullptr)
    trace_->add(Trace::Track::Wait, fmt::format("for bucket {} of the step before", bucket), since);
}

void GradientEngine::poll() {
  if (posted_ || late()) advance();
}

void GradientEngine::progress() {
  gradient_flags_->check_alive();
  check_nobody_left();
  advance();
}

// Of ranks for whose messages this one waits. Messages may still be on their way when their sender has left.
void GradientEngine::check_nobody_left() {
  if (!memory_.somebody_left()) return;
  const auto now = std::chrono::steady_clock::now();
  if (!left_since_) left_since_ = now;
  if (++looks_since_ > kLooks && now - *left_since_ > kOnTheWay) memory_.check_nobody_left();
}

void GradientEngine::meet() {
  comm::Request all = gradient_comm_.ibarrier();
  for (Backoff wait; !all.test(); wait.pause()) {
    heartbeat_.wait();
    progress();
  }
  heartbeat_.beat();
}

void GradientEngine::retired(const Parameter* parameter) {
  const int bucket = store_.bucket_of(parameter);
  heartbeat_.touch_bucket(bucket);
  if (--awaited_[static_cast<std::size_t>(bucket)] > 0) return;
  join(bucket);
  if (walk_.last()) start_in_order(bucket);
}

// Plans of different batches may finish buckets in different orders, but ranks must not start them so.
void GradientEngine::start_in_order(int bucket) {
  complete_[static_cast<std::size_t>(bucket)] = true;
  while (next_ < complete_.size() && complete_[next_]) reducer_->start(reduction_of(next_++));
}

void GradientEngine::join(int number) {
  Bucket& bucket = store_.buckets()[static_cast<std::size_t>(number)];
  walk_.join([&](int from_slot, int into_slot) {
    const void* from = bucket.gradients[static_cast<std::size_t>(from_slot)];
    void* into = bucket.gradients[static_cast<std::size_t>(into_slot)];
    if (store_.options().dtype == DType::F64) {
      add_into(bucket.elements, static_cast<const double*>(from), static_cast<double*>(into));
    } else {
      add_into(bucket.elements, static_cast<const float*>(from), static_cast<float*>(into), options_.reduction.wire);
    }
  });
}

void GradientEngine::zero_gradients() {
  for (std::size_t b = 0; b < store_.buckets().size(); ++b) {
    Bucket& bucket = store_.buckets()[b];
    needs(static_cast<int>(b));
    std::memset(bucket.gradients[static_cast<std::size_t>(slot())], 0,
                static_cast<std::size_t>(bucket.elements) * size_of(store_.options().dtype));
    for (const BucketEntry& entry : bucket.entries) retired(entry.parameter);
  }
}

// --- what goes on meanwhile

bool GradientEngine::drive() {
  const bool moved = control_->progress();
  return reducer_->progress() || moved;
}

bool GradientEngine::advance() {
  bool moved = false;
  try {
    if (thread_) {
      thread_->rethrow();
    } else {
      moved = drive();
    }
  } catch (const Error&) {
    if (!sums_known_) sums_arrived();  // what is wrong for all ranks is told by each, not as another's failure
    throw;
  }
  if (!sums_known_ && !sums_arrived()) return moved;
  if (!decided_ && !decide()) return moved;
  return update_buckets() || moved;
}

void GradientEngine::check_same_rate() const {
  for (int r = 0; r < world_.size; ++r) {
    const auto rate = std::bit_cast<double>(control_->word(r, kRateWord));
    check(rate == update_.learning_rate, "ranks", "the learning rate differs: rank {} has {}, rank {} has {}", r, rate,
          world_.rank, update_.learning_rate);
  }
}

void GradientEngine::check_same_position() const {
  const auto text = [](std::uint64_t word) {
    return fmt::format("sample {} of epoch {}", word & (position_word(1, 0) - 1), (word >> 40) + 1);
  };
  const std::uint64_t mine = control_->word(world_.rank, kPositionWord);
  for (int r = 0; r < world_.size; ++r) {
    const std::uint64_t other = control_->word(r, kPositionWord);
    if (other != mine)
      lockstep::fail("ranks", "the position in the data set differs: rank {} is at {}, rank {} at {}", r, text(other),
                     world_.rank, text(mine));
  }
}

bool GradientEngine::sums_arrived() {
  if (!posted_ || !control_->complete()) return false;
  control_->total();
  control_->check_same(kStepWord, "the number of the step");
  control_->check_same(kSamplesWord, "the number of samples in the step");
  check_same_position();
  check_same_rate();
  const double samples = sums()[kSampleSum], weight = sums()[kWeightSum];
  has_samples_ = samples > 0;
  check(samples == 0 || weight > 0, "step", "update {}: the weights of {} samples add up to {}", update_.count, samples,
        weight);
  update_.gradient_scale = samples > 0 ? 1 / weight : 0;
  if (keeps_gradients_local()) update_.gradient_scale = local_weight_ > 0 ? 1 / local_weight_ : 0;
  judge();
  return sums_known_ = true;
}

// Whether updates may go on: at once, or after the last bucket has come if the whole gradient decides.
bool GradientEngine::decide() {
  const bool clips = squares_bucket_ >= 0;
  if (!clips && !inspect_) return decided_ = true;
  if (next_ < complete_.size()) return false;
  for (std::size_t b = 0; b < updates_.size(); ++b) {
    if (!reducer_->reduced(reduction_of(b))) return false;
  }
  if (clips) {
    if (!std::exchange(squares_started_, true)) reducer_->start(squares_bucket_);
    if (!reducer_->reduced(squares_bucket_)) return false;
    double total = 0;
    for (double square : squares_) total += square;
    gradient_norm_ = std::sqrt(total) * update_.gradient_scale;
    if (guard_ && applies()) judge_gradient();
    // As torch.nn.utils.clip_grad_norm_.
    const double factor = options_.clip_norm / (gradient_norm_ + 1e-6);
    if (options_.clip_norm > 0 && factor < 1) update_.gradient_scale *= factor;
  }
  if (inspect_ && applies()) update_.gradient_scale *= inspect_();
  return decided_ = true;
}

bool GradientEngine::update_buckets() {
  bool moved = false;
  for (std::size_t b = 0; b < next_; ++b) moved = update_bucket(b) || moved;
  return moved;
}

bool GradientEngine::update_bucket(std::size_t b) {
  if (updates_[b] == Update::Done) return false;
  const int reduction = reduction_of(b);
  Bucket& bucket = store_.buckets()[b];
  if (updates_[b] == Update::ValuesSent) {
    if (!reducer_->values_arrived(reduction)) return false;
    const auto since = Trace::Clock::now();
    for (Range range : reducer_->received(reduction)) store_.refresh(bucket, range);
    seal(b, reducer_->received(reduction));
    reducer_->release(reduction);
    if (trace_ != nullptr)
      trace_->add(Trace::Track::Update, fmt::format("take over bucket {}", b), since, update_.count);
  } else {
    if (!reducer_->reduced(reduction)) return false;
    const auto since = Trace::Clock::now();
    if (applies()) {
      const std::array<Range, 1> whole{Range{0, bucket.elements}};
      const std::span<const Range> ranges = owners_update_ ? reducer_->owned(reduction) : std::span<const Range>(whole);
      verify_before_update(b, ranges);
      for (Range range : ranges) updater_.update(b, range, update_);
      seal(b, ranges);
      if (trace_ != nullptr)
        trace_->add(Trace::Track::Update, fmt::format("update bucket {}", b), since, update_.count);
    }
    if (shards_optimizer()) {
      reducer_->send_values(reduction);
      updates_[b] = Update::ValuesSent;
      return true;
    }
    if (owners_update_) reducer_->release(reduction);
  }
  updates_[b] = Update::Done;
  ++updated_;
  return true;
}

template <class Done>
void GradientEngine::wait_until(const Done& done) {
  for (Backoff wait; !done();) {
    if (advance()) {
      wait = {};
      heartbeat_.beat();
    } else {
      heartbeat_.wait();
      wait.pause();
    }
  }
  heartbeat_.beat();
}

void GradientEngine::note_in(Trace* trace) {
  settle();
  trace_ = trace;
  reducer_->note_in(trace);
}

void GradientEngine::take_times(Trace::Clock::time_point since) {
  times_.compute = std::chrono::duration<double>(since - begun_).count() - times_.earlier;
  times_.waiting = seconds_since(since);
  const BucketReducer::Traffic now = reducer_->traffic();
  times_.traffic = {.sent = now.sent - traffic_before_.sent,
                    .network_ns = now.network_ns - traffic_before_.network_ns,
                    .summed = now.summed - traffic_before_.summed,
                    .summing_ns = now.summing_ns - traffic_before_.summing_ns};
  std::uint64_t least = control_->word(0, kTimeWord), most = least;
  for (int r = 1; r < world_.size; ++r) {
    const std::uint64_t time = control_->word(r, kTimeWord);
    least = std::min(least, time);
    if (time > most) {
      most = time;
      times_.slowest = r;
    }
  }
  times_.slowest_lead = 1e-9 * static_cast<double>(most - least);
  if (trace_ != nullptr) trace_->add(Trace::Track::Wait, "for the other ranks", since);
}

// In a domain ranks sum for each other, and none is done before the others. What decides over updates, or replaces the
// reduction, wants them whole; so does who finds out why this step is held back.
bool GradientEngine::defers() const {
  return options_.late_updates && memory_.domains().count() > 1 && squares_bucket_ < 0 && !inspect_ &&
         options_.reduction.hook == nullptr && verdict_ == StepVerdict::Apply;
}

void GradientEngine::finish_step() {
  const auto since = Trace::Clock::now();
  wait_until(
      [this] { return sums_known_ && decided_ && (defers() || !late()) && reducer_->reduced(kStatisticsBucket); });
  posted_ = false;
  made_ = update_.count;
  if (thread_ && !late()) thread_->sleep();
  take_times(since);
  store_.values_changed();
  note_seals();
  if (verdict_ != StepVerdict::Apply || !keeps_gradients_local()) return;
  replicas_differ_ = true;
  if (update_.count % options_.local_steps == 0) average_replicas();
}

void GradientEngine::drive_by_thread(bool thread) {
  if (thread == (thread_ != nullptr)) return;
  settle();
  thread_.reset();
  reducer_->allow_threads(!thread);
  if (thread) thread_ = std::make_unique<ProgressThread>([this] { return drive(); });
}

void GradientEngine::average_replicas() {
  if (!replicas_differ_) return;
  meet();
  const auto average = [&]<class T>(T* values, std::int64_t elements) {
    const std::span<T> all(values, static_cast<std::size_t>(elements));
    gradient_comm_.allreduce(all, comm::ReduceOp::Sum);
    for (T& v : all) v /= static_cast<T>(world_.size);
  };
  for (Bucket& b : store_.buckets()) {
    std::vector<std::byte*> parts = b.states;
    parts.push_back(b.values);
    for (std::byte* part : parts) {
      store_.options().dtype == DType::F64 ? average(reinterpret_cast<double*>(part), b.elements)
                                           : average(reinterpret_cast<float*>(part), b.elements);
    }
  }
  store_.refresh();
  sealed_version_ = 0;
  replicas_differ_ = false;
}

void GradientEngine::settle() {
  for (std::size_t b = 0; b < updates_.size(); ++b) needs(static_cast<int>(b));
  if (thread_ && !posted_) thread_->sleep();
}

void GradientEngine::fence() {
  settle();
  heartbeat_.wait();
  memory_.fence();
  heartbeat_.beat();
}

}  // namespace lockstep
