#include "lockstep/train/run/stream_course.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/log.h"
#include "lockstep/core/partition.h"
#include "lockstep/core/random.h"
#include "lockstep/train/monitor/requests.h"

namespace lockstep::train {

StreamCourse::StreamCourse(const RunFacts& facts) : facts_(facts) {}

std::int64_t StreamCourse::batch() const {
  return part_of(facts_.global_batch(), facts_.comm.size(), facts_.comm.rank()).size();
}

void StreamCourse::open() {
  const std::int64_t capacity = facts_.options.stream.reservoir.capacity;
  progress_ = StreamProgress{}.continued(facts_.comm.size(), capacity);
  comm::collectively(facts_.comm, [&] { start_producer(); });
}

void StreamCourse::reopen(const StreamProgress& saved, data::SamplerPosition position, const io::TensorSource& of_root,
                          const std::string& file) {
  position_ = before_ = position;
  progress_ = saved.continued(facts_.comm.size(), facts_.options.stream.reservoir.capacity);
  comm::collectively(facts_.comm, [&] { start_producer(); });
  if (reservoir_) restore_reservoir(facts_.comm, of_root, saved, file, *reservoir_);
  const data::StreamStart at = progress_.start(facts_.comm.rank());
  log()->info("stream: of this rank's samples {} are trained: its producer goes on with the next one, of id {}",
              at.consumed, at.next_id);
  if (facts_.comm.is_root() && facts_.comm.size() > 1)
    log()->info("stream: samples that are trained, by rank: {}",
                fmt::format("{}", fmt::join(progress_.consumed.back(), ", ")));
}

// Nothing is pulled before the first next().
void StreamCourse::start_producer() {
  loader_.reset();  // the former producer ends first
  error_ = nullptr;
  ended_ = ended_within_epoch_ = false;
  const Options& o = facts_.options;
  const data::StreamSource& source = *facts_.data.stream;
  const int rank = facts_.comm.rank();
  const data::StreamStart at = progress_.start(rank);
  began_at_ = at.consumed;
  reservoir_.reset();
  if (o.stream.reservoir.capacity > 0)
    reservoir_ = std::make_shared<data::Reservoir>(
        source.fields, o.stream.reservoir, mix(mix(o.seed, hash_name("reservoir")), static_cast<std::uint64_t>(rank)));
  loader_ = std::make_unique<data::StreamLoader>(data::StreamOptions{.fields = source.fields,
                                                                     .pull = source.open(at),
                                                                     .batch = batch(),
                                                                     .first_id = at.next_id,
                                                                     .id_stride = at.size,
                                                                     .prefetch = source.prefetch,
                                                                     .seed = o.seed,
                                                                     .transforms = facts_.data.train_transforms,
                                                                     .reservoir = reservoir_});
}

data::Batch StreamCourse::next() {
  before_ = position_;
  if (++position_.offset == facts_.options.stream.steps_per_epoch) position_ = {position_.epoch + 1, 0};
  data::Batch batch;
  try {
    if (!error_) batch = loader_->next().value_or(data::Batch{});
  } catch (...) {
    error_ = std::current_exception();
  }
  batch.step.global_size = -1;
  return batch;
}

std::uint64_t StreamCourse::requests() const { return error_ ? std::uint64_t{kProducerFailed} : 0; }

bool StreamCourse::take_step(std::int64_t samples, std::uint64_t requests) {
  if ((requests & kProducerFailed) != 0)
    comm::collectively(facts_.comm, [&] {
      if (error_) std::rethrow_exception(error_);
    });
  if (samples > 0) return true;
  ended_ = true;
  ended_within_epoch_ = before_.offset > 0;
  position_ = ended_within_epoch_ ? data::SamplerPosition{before_.epoch + 1, 0} : before_;
  return false;
}

void StreamCourse::gather_progress() {
  const data::Reservoir::Counts mine = reservoir_ ? reservoir_->counts() : data::Reservoir::Counts{};
  std::vector<std::int64_t> all(4 * static_cast<std::size_t>(facts_.comm.size()));
  const std::vector<std::int64_t> own{began_at_ + loader_->consumed(), mine.offered, mine.batches, mine.held};
  facts_.comm.allgather(own, comm::Buffer(all));
  for (std::size_t r = 0; r < all.size() / 4; ++r) {
    const std::int64_t* of_rank = all.data() + 4 * r;
    progress_.consumed.back()[r] = of_rank[0];
    if (reservoir_) progress_.reservoirs[r] = {.offered = of_rank[1], .batches = of_rank[2], .held = of_rank[3]};
  }
}

Spooled StreamCourse::spool(Heartbeat& heartbeat, const io::Folder* folder) const {
  return reservoir_ ? spool_reservoirs(facts_.comm, heartbeat, folder, *reservoir_, progress_) : Spooled{};
}

std::size_t StreamCourse::bytes() const {
  std::size_t sample = 0, source = 0;
  for (const data::Field& field : facts_.data.fields()) sample += field.bytes();
  for (const data::Field& field : facts_.data.stream->fields) source += field.bytes();
  const auto ahead = static_cast<std::size_t>(facts_.data.stream->prefetch) + 1;
  const auto held = static_cast<std::size_t>(facts_.options.stream.reservoir.capacity);
  return ahead * static_cast<std::size_t>(batch()) * sample + held * source;
}

}  // namespace lockstep::train
