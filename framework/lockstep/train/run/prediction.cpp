#include "lockstep/train/run/prediction.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/core/log.h"
#include "lockstep/data/array_file.h"
#include "lockstep/data/class_predictions.h"
#include "lockstep/data/loader.h"
#include "lockstep/train/prepare/batch_check.h"
#include "lockstep/train/report/result_line.h"

namespace lockstep::train {
namespace {

using Arrays = std::vector<data::NamedTensor>;

// The groups of samples, which ranks take in turn: rank r has groups r, r + ranks, ...
struct Groups {
  std::int64_t samples, size;  // of all groups together, of one
  int ranks;

  std::int64_t count() const { return (samples + size - 1) / size; }
  std::int64_t rounds() const { return (count() + ranks - 1) / ranks; }
  Range of(std::int64_t round, int rank) const {
    const std::int64_t first = std::min((round * ranks + rank) * size, samples);
    return {first, std::min(first + size, samples)};
  }
};

// The samples of one rank with inputs that are not finite.
struct BadInputs {
  std::int64_t count = 0, first = std::numeric_limits<std::int64_t>::max();

  void add(const data::Batch& batch) {
    for (std::int64_t row = 0; row < batch.samples(); ++row) {
      const auto is_bad = [&](const Tensor& field) { return first_bad_row(field, {row, row + 1}) >= 0; };
      if (!std::ranges::any_of(batch.fields, is_bad)) continue;
      ++count;
      first = std::min(first, batch.step.samples[static_cast<std::size_t>(row)]);
    }
  }
  // Warns about those of all ranks. Collective.
  void report(const comm::Communicator& comm, const data::Dataset& dataset) const {
    const std::int64_t all = comm.allreduce(count, comm::ReduceOp::Sum);
    const std::int64_t least = comm.allreduce(first, comm::ReduceOp::Min);
    if (all == 0 || !comm.is_root()) return;
    log()->warn("predict: the inputs of {} of {} samples are not finite, the first is {}: expected finite numbers", all,
                dataset.size(), dataset.locate(least));
  }
};

// The samples of one rank's groups.
class GroupOrder : public data::SampleOrder {
 public:
  GroupOrder(const Groups& groups, int rank) : samples_(groups.samples) {
    for (std::int64_t round = 0; round < groups.rounds(); ++round) {
      const Range group = groups.of(round, rank);
      for (std::int64_t i = group.begin; i < group.end; ++i) own_.push_back(i);
    }
  }
  std::int64_t samples() const override { return samples_; }
  std::int64_t length() const override { return static_cast<std::int64_t>(own_.size()); }
  std::vector<std::int64_t> indices(std::uint64_t /*seed*/, std::int64_t /*epoch*/) const override { return own_; }

 private:
  std::int64_t samples_;
  std::vector<std::int64_t> own_;
};

// A set that does not know where its samples come from has "sample N" for them.
bool knows_places(const data::Dataset& samples) {
  constexpr std::string_view kNumbered = "sample ";
  const std::string place = samples.locate(0);
  return !place.starts_with(kNumbered) || place.find_first_not_of("0123456789", kNumbered.size()) != place.npos;
}

std::unique_ptr<data::Loader> loader_of(const data::RunData& data, const Groups& groups,
                                        const std::shared_ptr<GroupOrder>& order, int threads, int prefetch) {
  return std::make_unique<data::Loader>(
      data.predicted(),
      data::DistributedSampler({.size = order->length(), .global_batch = groups.size, .order = order}),
      data.eval_transforms,
      data::LoaderOptions{.threads = threads, .prefetch = prefetch, .finish = data.prediction.finish});
}

class Writer {
 public:
  Writer(const RunParts& run, const Groups& groups) : run_(run), comm_(run.facts.comm), groups_(groups) {
    comm::collectively(comm_, [&] {
      if (comm_.is_root()) file_.emplace(run_.facts.options.predict);
    });
    const auto order = std::make_shared<GroupOrder>(groups, comm_.rank());
    if (order->length() == 0) return;
    // Each group is made by one thread, and no more are made ahead than there are.
    const int threads = run_.facts.threads.loaders;
    const std::int64_t own = (order->length() + groups.size - 1) / groups.size;
    loader_ =
        loader_of(run_.facts.data, groups, order, threads, static_cast<int>(std::min<std::int64_t>(threads + 1, own)));
  }

  void write_round(std::int64_t round) {
    run_.heartbeat.beat();
    Arrays own;
    comm::collectively(comm_, [&] {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      if (groups_.of(round, comm_.rank()).size() > 0) own = compute();
      if (comm_.is_root()) make_room(round, own);
      run_.heartbeat.wait();  // for the slowest rank
    });
    run_.heartbeat.beat();
    for (comm::Request& sent : sent_) sent.wait();
    sent_.clear();
    if (comm_.is_root()) return write(round, own);
    for (const data::NamedTensor& array : own)
      sent_.push_back(comm_.isend(comm::ConstBuffer(bytes_of(array.tensor)), 0));
  }

  void finish() {
    run_.heartbeat.wait();
    comm::collectively(comm_, [&] {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      if (file_) file_->commit();
    });
    bad_.report(comm_, run_.facts.data.predicted());
    run_.heartbeat.beat();
  }
  const std::vector<data::Field>& arrays() const { return arrays_; }  // on rank 0

 private:
  static std::span<std::byte> bytes_of(Tensor& tensor) { return {tensor.raw(), tensor.bytes()}; }
  static std::span<const std::byte> bytes_of(const Tensor& tensor) { return {tensor.raw(), tensor.bytes()}; }

  Arrays compute() {
    data::Batch batch = loader_->next();
    Tensor prediction = run_.trainer.predict(batch);
    const std::int64_t samples = batch.samples();
    bad_.add(batch);
    loader_->recycle(std::move(batch));
    check(prediction.shape().rank() > 0 && prediction.shape()[0] == samples, "predict",
          "the prediction for {} samples is {}, expected one row for each sample", samples, prediction.shape().str());
    const data::RunData& data = run_.facts.data;
    if (data.prediction.decode) return data.prediction.decode(std::move(prediction));
    if (data.classes() > 0) return data::class_predictions(prediction, data.classes());
    Arrays arrays;
    arrays.push_back({"prediction", std::move(prediction)});
    return arrays;
  }

  // Makes memory for the groups of other ranks where a lack of it is an error of all ranks: one group's, and that of
  // the smaller last group.
  void make_room(std::int64_t round, const Arrays& own) {
    room_.clear();
    for (int rank = 1; rank < comm_.size(); ++rank) {
      const std::int64_t samples = groups_.of(round, rank).size();
      if (samples == 0 || room_.contains(samples)) continue;
      Arrays& part = room_[samples];
      for (const auto& [name, tensor] : own)
        part.push_back({name, Tensor(tensor.shape().tail().batched(samples), tensor.dtype())});
    }
  }

  // Writes the groups of all ranks. After a failure, which all ranks learn in the next round, the messages of this one
  // are received all the same.
  void write(std::int64_t round, const Arrays& own) {
    append(own);
    for (int rank = 1; rank < comm_.size(); ++rank) {
      const std::int64_t samples = groups_.of(round, rank).size();
      if (samples == 0) break;
      Arrays& part = room_.at(samples);
      for (data::NamedTensor& array : part) comm_.recv(comm::Buffer(bytes_of(array.tensor)), rank);
      append(part);
    }
  }

  void append(const Arrays& part) {
    if (failure_) return;
    try {
      if (arrays_.empty()) begin(part);
      fault_point("predict.write", written_);
      file_->append(part);
      written_ += part.front().tensor.shape()[0];
      run_.heartbeat.beat();
    } catch (...) {  // also of another kind, such as no memory: the other ranks would wait in the next round
      failure_ = std::current_exception();
    }
  }

  void begin(const Arrays& part) {
    for (const auto& [name, tensor] : part) arrays_.push_back({name, tensor.shape().tail(), tensor.dtype()});
    file_->begin(arrays_, groups_.samples, notes(part));
  }

  // The facts of the run about its samples, classes and weights.
  data::ArrayNotes notes(const Arrays& part) const {
    const RunFacts& facts = run_.facts;
    data::ArrayNotes notes;
    nlohmann::ordered_json metadata = {{"weights", facts.weights}, {"step", nullptr}};
    if (facts.weights_step >= 0) metadata["step"] = facts.weights_step;
    if (!part.empty() && part.front().name == data::kClassArray) {
      notes.class_names = facts.data.labels.names;
      if (!notes.class_names.empty()) metadata["class_names"] = notes.class_names;
      const data::Dataset& samples = facts.data.predicted();
      if (knows_places(samples)) notes.file = [&samples](std::int64_t sample) { return samples.locate(sample); };
    }
    notes.metadata = metadata.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    return notes;
  }

  const RunParts& run_;
  const comm::Communicator& comm_;
  Groups groups_;
  std::optional<data::ArrayFile> file_;   // on rank 0
  std::unique_ptr<data::Loader> loader_;  // empty: this rank has no group
  std::map<std::int64_t, Arrays> room_;   // on rank 0: for groups of other ranks, by their samples
  std::vector<data::Field> arrays_;       // on rank 0, from the first group on
  std::int64_t written_ = 0;              // samples, on rank 0
  std::vector<comm::Request> sent_;
  std::exception_ptr failure_;
  BadInputs bad_;
};

std::int64_t group_size(const Options& o) {
  return o.batch_size > 0 ? o.batch_size : std::clamp<std::int64_t>(o.global_batch, 1, 64);
}

// On rank 0.
void say_written(const RunFacts& facts, std::int64_t samples, std::span<const data::Field> arrays, double seconds) {
  std::string text;
  nlohmann::ordered_json json = {{"file", facts.options.predict},
                                 {"weights", facts.weights},
                                 {"samples", samples},
                                 {"seconds", seconds},
                                 {"arrays", nlohmann::ordered_json::object()}};
  for (const data::Field& array : arrays) {
    const Shape shape = array.shape.batched(samples);
    text += formatted("{}{} {}", text.empty() ? "" : ", ", array.name, shape.str());
    json["arrays"][array.name] = std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end());
  }
  log()->info("predict: {}: {}; {:.0f} samples/s", facts.options.predict, text,
              static_cast<double>(samples) / std::max(seconds, 1e-9));
  if (facts.options.json) print_result(json);
}

}  // namespace

plan::ModelFunction prediction_alone(plan::ModelFunction model) {
  return [model = std::move(model)](const plan::Inputs& in) {
    plan::Traced traced = model(in);
    if (in.graph().mode() == Mode::Train) return traced;
    check(bool(traced.prediction), "predict", "the model function returns no plan::Traced::prediction, expected one");
    return plan::Traced{.prediction = traced.prediction};
  };
}

data::Batch first_group(const RunParts& run) {
  const Groups groups{.samples = run.facts.data.predicted().size(), .size = group_size(run.facts.options), .ranks = 1};
  return loader_of(run.facts.data, groups, std::make_shared<GroupOrder>(groups, 0), 0, 1)->next();
}

void write_predictions(const RunParts& run) {
  using Clock = std::chrono::steady_clock;
  const Groups groups{.samples = run.facts.data.predicted().size(),
                      .size = group_size(run.facts.options),
                      .ranks = run.facts.comm.size()};
  run.trainer.settle();
  run.heartbeat.enter(Heartbeat::Phase::Evaluating);
  const Clock::time_point began = Clock::now();
  Clock::time_point said = began;
  Writer writer(run, groups);
  for (std::int64_t round = 0; round < groups.rounds(); ++round) {
    writer.write_round(round);
    if (Clock::now() - said < std::chrono::seconds(10)) continue;
    said = Clock::now();
    log()->info("predict: {} of {} samples", groups.of(round, run.facts.comm.size() - 1).end, groups.samples);
  }
  writer.finish();
  run.heartbeat.enter(Heartbeat::Phase::Outside);
  if (!run.facts.comm.is_root()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  say_written(run.facts, groups.samples, writer.arrays(), seconds);
}

}  // namespace lockstep::train
