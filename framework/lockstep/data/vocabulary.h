// Gives rows of a table to ids without a list of the ids: an id gets a row in training, when it is seen, and loses the
// row when it is not seen any more. Fields of ids have vocabularies of their own, of one size. Row 0 stands for missing
// and unknown ids.
//
// All ranks have the same vocabulary and take the same sightings of a step in the same order, by position in the global
// batch, so rows do not depend on the number of ranks. An id gets a row in the step in which its sightings reach
// `admit_after`: the lowest row that is free. Ids of one step are admitted in the order of their first positions. An id
// that no step of the last `evict_after` ones has seen loses its row before the next admission. Where no row is free,
// an id stays unknown. Sightings of ids without a row are counted for the last `rows` of them in each field.
//
// One thread changes a vocabulary; between two changes any thread may call the const functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::data {

struct VocabularyOptions {
  std::int64_t fields = 1;
  std::int64_t rows = 0;         // of each field, row 0 included: 2 to 2^31 - 1
  std::int64_t admit_after = 1;  // sightings
  std::int64_t evict_after = 0;  // steps; 0: ids keep their rows
};

// An id in a step: how often, and the first place, counted through all fields of all samples of the global batch.
struct Sighting {
  std::int64_t field = 0, id = 0, times = 0, position = 0;
};

class Vocabulary {
 public:
  // Throws Error for options out of range.
  explicit Vocabulary(const VocabularyOptions& options);

  const VocabularyOptions& options() const { return options_; }
  std::int64_t row(std::int64_t field, std::int64_t id) const;  // 0: the id is missing or unknown
  std::int64_t known(std::int64_t field) const;                 // ids that have a row
  std::int64_t steps() const { return steps_; }

  // Whether a rank must report sightings of ids that have rows: their age counts.
  bool ages() const { return options_.evict_after > 0; }

  // A row that another id has now, or none.
  struct Change {
    std::int64_t field, row;
  };
  // Takes the sightings of a step of all ranks, in any order; one id may be in the list several times, once for each
  // rank. Ids below 0 are missing and are left out. Returns the rows that ids got which other ids had before: the table
  // begins anew there.
  std::vector<Change> advance(std::vector<Sighting> sightings);

  // The state as numbers: state_size() of them, whatever the vocabulary has. load() throws Error for numbers that are
  // no state of a vocabulary of these options; it is unchanged then.
  static std::int64_t state_size(const VocabularyOptions& options);
  std::vector<std::int64_t> state() const;
  void load(std::span<const std::int64_t> state);

 private:
  struct Entry {
    std::int64_t id = -1, last = -1;  // the last step that saw it; -1: the row is free
    bool used = false;                // an id had the row once
  };
  struct Candidate {
    std::int64_t id = -1, times = 0;
  };
  struct Field {
    std::vector<Entry> rows{};                               // by row; row 0 is no id's
    std::unordered_map<std::int64_t, std::int64_t> by_id{};  // row
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free{};
    std::map<std::int64_t, std::vector<std::int64_t>>
        ages{};                           // with eviction: rows by last step, some of them outdated
    std::vector<Candidate> candidates{};  // a ring
    std::unordered_map<std::int64_t, std::int64_t> waiting{};  // place in the ring
    std::int64_t next = 0;                                     // place of the next candidate
  };

  Field empty_field() const;
  void touch(Field& field, std::int64_t row) const;
  void evict(Field& field) const;
  bool is_due(Field& field, const Sighting& sighting) const;
  std::vector<Sighting> merged(std::vector<Sighting> sightings) const;

  VocabularyOptions options_;
  std::int64_t steps_ = 0;
  std::vector<Field> fields_;
};

}  // namespace lockstep::data
