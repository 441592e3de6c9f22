#include "lockstep/data/vocabulary.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kSite = "vocabulary";
constexpr std::int64_t kMagic = 0x4C4F434B564F4331;  // "LOCKVOC1"
constexpr std::int64_t kHeader = 6;                  // magic, the four options, steps

// Numbers of a field in the state: the next place of the ring; of each row an id, the last step, and whether it was
// used; of each candidate an id and its sightings.
std::int64_t candidates_of(const VocabularyOptions& o) { return o.admit_after > 1 ? o.rows : 0; }
std::int64_t field_size(const VocabularyOptions& o) { return 1 + 3 * o.rows + 2 * candidates_of(o); }

}  // namespace

Vocabulary::Vocabulary(const VocabularyOptions& options) : options_(options) {
  const VocabularyOptions& o = options_;
  check(o.fields >= 1 && o.rows >= 2 && o.rows <= std::numeric_limits<std::int32_t>::max(), kSite,
        "{} fields of {} rows, expected at least 1 field and 2 to 2^31 - 1 rows", o.fields, o.rows);
  check(o.admit_after >= 1 && o.evict_after >= 0, kSite,
        "admission after {} sightings and eviction after {} steps, expected at least 1, and 0 (none) or more",
        o.admit_after, o.evict_after);
  for (std::int64_t f = 0; f < o.fields; ++f) fields_.push_back(empty_field());
}

Vocabulary::Field Vocabulary::empty_field() const {
  Field field;
  field.rows.resize(static_cast<std::size_t>(options_.rows));
  field.candidates.resize(static_cast<std::size_t>(candidates_of(options_)));
  std::vector<std::int64_t> free;
  for (std::int64_t row = 1; row < options_.rows; ++row) free.push_back(row);
  field.free = decltype(field.free)(std::greater<>(), std::move(free));
  return field;
}

std::int64_t Vocabulary::row(std::int64_t field, std::int64_t id) const {
  const auto& by_id = fields_[static_cast<std::size_t>(field)].by_id;
  const auto found = by_id.find(id);
  return found == by_id.end() ? 0 : found->second;
}

std::int64_t Vocabulary::known(std::int64_t field) const {
  return std::ssize(fields_[static_cast<std::size_t>(field)].by_id);
}

// One sighting for each id of a field, by first position.
std::vector<Sighting> Vocabulary::merged(std::vector<Sighting> list) const {
  const auto key = [](const Sighting& s) { return std::tuple(s.field, s.id, s.position); };
  std::ranges::sort(list, {}, key);
  std::vector<Sighting> all;
  for (const Sighting& one : list) {
    check(one.field >= 0 && one.field < options_.fields && one.times >= 1, kSite,
          "{} sightings of an id in field {}, expected at least 1 and a field from 0 to {}", one.times, one.field,
          options_.fields - 1);
    if (one.id < 0) continue;
    if (!all.empty() && all.back().field == one.field && all.back().id == one.id)
      all.back().times += one.times;
    else
      all.push_back(one);
  }
  std::ranges::sort(all, {}, [](const Sighting& s) { return std::tuple(s.position, s.field, s.id); });
  return all;
}

void Vocabulary::touch(Field& field, std::int64_t row) const {
  Entry& entry = field.rows[static_cast<std::size_t>(row)];
  if (options_.evict_after > 0 && entry.last != steps_) field.ages[steps_].push_back(row);
  entry.last = steps_;
}

void Vocabulary::evict(Field& field) const {
  if (options_.evict_after == 0) return;
  while (!field.ages.empty() && field.ages.begin()->first < steps_ - options_.evict_after) {
    const auto [last, rows] = *field.ages.begin();
    field.ages.erase(field.ages.begin());
    for (const std::int64_t row : rows) {
      Entry& entry = field.rows[static_cast<std::size_t>(row)];
      if (entry.last != last || entry.id < 0) continue;  // it was seen later
      field.by_id.erase(entry.id);
      entry = {.used = true};
      field.free.push(row);
    }
  }
}

// Counts the sightings of an id without a row; true: they suffice.
bool Vocabulary::is_due(Field& field, const Sighting& one) const {
  if (one.times >= options_.admit_after) return true;
  const auto found = field.waiting.find(one.id);
  if (found != field.waiting.end()) {
    Candidate& candidate = field.candidates[static_cast<std::size_t>(found->second)];
    candidate.times += one.times;
    return candidate.times >= options_.admit_after;
  }
  Candidate& place = field.candidates[static_cast<std::size_t>(field.next)];
  if (place.id >= 0) field.waiting.erase(place.id);
  place = {one.id, one.times};
  field.waiting[one.id] = field.next;
  field.next = (field.next + 1) % std::ssize(field.candidates);
  return false;
}

std::vector<Vocabulary::Change> Vocabulary::advance(std::vector<Sighting> sightings) {
  const std::vector<Sighting> all = merged(std::move(sightings));
  ++steps_;
  for (const Sighting& one : all) {
    Field& field = fields_[static_cast<std::size_t>(one.field)];
    if (const auto known = field.by_id.find(one.id); known != field.by_id.end()) touch(field, known->second);
  }
  for (Field& field : fields_) evict(field);
  std::vector<Change> changes;
  for (const Sighting& one : all) {
    Field& field = fields_[static_cast<std::size_t>(one.field)];
    if (field.by_id.contains(one.id) || !is_due(field, one) || field.free.empty()) continue;
    const std::int64_t row = field.free.top();
    field.free.pop();
    if (const auto waited = field.waiting.find(one.id); waited != field.waiting.end()) {
      field.candidates[static_cast<std::size_t>(waited->second)] = {};
      field.waiting.erase(waited);
    }
    Entry& entry = field.rows[static_cast<std::size_t>(row)];
    if (entry.used) changes.push_back({one.field, row});
    entry = {.id = one.id, .last = -1, .used = true};
    field.by_id[one.id] = row;
    touch(field, row);
  }
  return changes;
}

std::int64_t Vocabulary::state_size(const VocabularyOptions& o) { return kHeader + o.fields * field_size(o); }

std::vector<std::int64_t> Vocabulary::state() const {
  const VocabularyOptions& o = options_;
  std::vector<std::int64_t> state{kMagic, o.fields, o.rows, o.admit_after, o.evict_after, steps_};
  state.reserve(static_cast<std::size_t>(state_size(o)));
  for (const Field& field : fields_) {
    state.push_back(field.next);
    for (const Entry& entry : field.rows) state.insert(state.end(), {entry.id, entry.last, entry.used ? 1 : 0});
    for (const Candidate& one : field.candidates) state.insert(state.end(), {one.id, one.times});
  }
  return state;
}

void Vocabulary::load(std::span<const std::int64_t> state) {
  const VocabularyOptions& o = options_;
  check(std::ssize(state) == state_size(o) && state[0] == kMagic, kSite,
        "the state has {} numbers and begins with {}, expected {} numbers of a vocabulary", state.size(),
        state.empty() ? 0 : state[0], state_size(o));
  check(state[1] == o.fields && state[2] == o.rows && state[3] == o.admit_after && state[4] == o.evict_after, kSite,
        "the state is that of {} fields, {} rows, admission after {} sightings and eviction after {} steps, expected "
        "{}, {}, {} and {}",
        state[1], state[2], state[3], state[4], o.fields, o.rows, o.admit_after, o.evict_after);
  std::vector<Field> fields;
  std::size_t at = static_cast<std::size_t>(kHeader);
  const auto next = [&] { return state[at++]; };
  for (std::int64_t f = 0; f < o.fields; ++f) {
    Field field = empty_field();
    field.free = {};
    field.next = next();
    check(field.next >= 0 && field.next < std::max<std::int64_t>(1, candidates_of(o)), kSite,
          "the state of field {} has the next candidate {}, expected 0 to {}", f, field.next, candidates_of(o));
    for (std::int64_t row = 0; row < o.rows; ++row) {
      Entry& entry = field.rows[static_cast<std::size_t>(row)];
      entry = {.id = next(), .last = next(), .used = next() != 0};
      check(entry.id < 0 || (row > 0 && entry.last >= 0 && entry.last <= state[5]), kSite,
            "the state of field {} has id {} in row {} of step {}, expected rows from 1 and steps up to {}", f,
            entry.id, row, entry.last, state[5]);
      if (entry.id >= 0) {
        check(field.by_id.emplace(entry.id, row).second, kSite, "the state of field {} has id {} twice", f, entry.id);
        if (o.evict_after > 0) field.ages[entry.last].push_back(row);
      } else if (row > 0) {
        field.free.push(row);
      }
    }
    for (std::size_t c = 0; c < field.candidates.size(); ++c) {
      field.candidates[c] = {next(), next()};
      if (field.candidates[c].id >= 0) field.waiting[field.candidates[c].id] = static_cast<std::int64_t>(c);
    }
    fields.push_back(std::move(field));
  }
  fields_ = std::move(fields);
  steps_ = state[5];
}

}  // namespace lockstep::data
