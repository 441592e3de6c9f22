#include "lockstep/train/callbacks/grow_vocabulary.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::train {

GrowVocabulary::GrowVocabulary(Setup setup, const comm::Communicator& comm)
    : Callback({.changes_batches = true}), setup_(std::move(setup)), vocabulary_(setup_.options), comm_(comm) {
  for (std::int64_t f = 0; f < setup_.options.fields && std::ssize(setup_.columns) <= f; ++f)
    setup_.columns.push_back({.field = f, .missing = f * setup_.options.rows});
}

// A new run's buffer is 0, and its vocabulary is empty.
void GrowVocabulary::load() {
  if (loaded_) return;
  const Tensor state = setup_.store().read(setup_.buffer);
  const auto numbers = state.data<std::int64_t>();
  if (std::ranges::any_of(numbers, [](std::int64_t n) { return n != 0; }))
    vocabulary_.load(numbers);
  else
    vocabulary_ = data::Vocabulary(vocabulary_.options());
  loaded_ = true;
}

void GrowVocabulary::before_checkpoint(std::int64_t /*step*/) {
  load();
  write_state();
}

void GrowVocabulary::write_state() {
  const std::vector<std::int64_t> state = vocabulary_.state();
  setup_.store().write(setup_.buffer, Tensor::from<std::int64_t>(Shape{std::ssize(state)}, state));
}

// Positions count ids of the step through all samples and fields, so they do not depend on which rank has a sample.
std::vector<data::Sighting> GrowVocabulary::sightings(const data::Batch& batch) const {
  const std::span<const std::int64_t> ids = batch.at("raw_ids").data<std::int64_t>();
  const auto columns = std::ssize(setup_.columns);
  std::vector<data::Sighting> all;
  std::vector<std::unordered_map<std::int64_t, std::size_t>> places(
      static_cast<std::size_t>(vocabulary_.options().fields));
  for (std::int64_t i = 0; i < std::ssize(ids); ++i) {
    const std::int64_t field = setup_.columns[static_cast<std::size_t>(i % columns)].field,
                       id = ids[static_cast<std::size_t>(i)];
    if (id < 0 || (!vocabulary_.ages() && vocabulary_.row(field, id) > 0)) continue;
    const auto [place, is_new] = places[static_cast<std::size_t>(field)].try_emplace(id, all.size());
    if (is_new)
      all.push_back({.field = field, .id = id, .times = 1, .position = batch.step.local.begin * columns + i});
    else
      ++all[place->second].times;
  }
  return all;
}

void GrowVocabulary::grow(data::Batch& batch) {
  load();
  const std::vector<data::Sighting> mine = sightings(batch);
  constexpr std::int64_t kNumbers = sizeof(data::Sighting) / sizeof(std::int64_t);
  static_assert(sizeof(data::Sighting) == kNumbers * sizeof(std::int64_t));
  const std::vector<std::int64_t> counts = comm_.allgather(std::ssize(mine) * kNumbers);
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  std::vector<data::Sighting> all(static_cast<std::size_t>(total / kNumbers));
  if (total > 0) {
    const std::span<const std::int64_t> from(reinterpret_cast<const std::int64_t*>(mine.data()),
                                             mine.size() * static_cast<std::size_t>(kNumbers));
    const std::span<std::int64_t> to(reinterpret_cast<std::int64_t*>(all.data()), static_cast<std::size_t>(total));
    comm_.allgatherv(comm::ConstBuffer(from), comm::Buffer(to), counts);
  }
  std::vector<std::int64_t> reused;
  for (const auto& [field, row] : vocabulary_.advance(std::move(all)))
    reused.push_back(field * vocabulary_.options().rows + row);
  reused_ += std::ssize(reused);
  if (!reused.empty() && setup_.reset) setup_.reset(reused);
  if (setup_.hash_every > 0 && vocabulary_.steps() % setup_.hash_every == 0) write_state();
  look_up(batch);
}

void GrowVocabulary::look_up(data::Batch& batch) {
  load();
  const std::span<const std::int64_t> ids = std::as_const(batch).at("raw_ids").data<std::int64_t>();
  const std::span<std::int32_t> rows = batch.at("ids").data<std::int32_t>();
  const std::int64_t size = vocabulary_.options().rows;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Column& column = setup_.columns[i % setup_.columns.size()];
    rows[i] = static_cast<std::int32_t>(ids[i] < 0 ? column.missing
                                                   : column.field * size + vocabulary_.row(column.field, ids[i]));
  }
}

std::int64_t GrowVocabulary::known() const {
  std::int64_t all = 0;
  for (std::int64_t f = 0; f < vocabulary_.options().fields; ++f) all += vocabulary_.known(f);
  return all;
}

void GrowVocabulary::after_evaluation(const EvaluationEvent& event, Orders& /*orders*/) {
  if (!comm_.is_root()) return;
  const data::VocabularyOptions& o = vocabulary_.options();
  log()->info("vocabulary: step {}: {} ids in {} fields have rows, of at most {}; {} rows were given to other ids",
              event.step, known(), o.fields, o.fields * (o.rows - 1), reused_);
}

}  // namespace lockstep::train
