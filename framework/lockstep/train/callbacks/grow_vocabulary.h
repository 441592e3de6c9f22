// Keeps the vocabularies of a run's ids (data/vocabulary.h): all ranks agree on the sightings of each step before it,
// so rows do not depend on the number of ranks. The state is a buffer of the model, an integer parameter of
// data::Vocabulary::state_size() numbers, so checkpoints, files of weights, evaluations and predictions have it.
//
// A program calls grow() with each training batch, and gives look_up() to data::PredictionFacts::finish. Batches have
// the fields "raw_ids" I64 (fields) and "ids" I32 (fields); both functions write the latter: the row within the table,
// which has the rows of one field after those of the one before.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/batch.h"
#include "lockstep/data/vocabulary.h"
#include "lockstep/train/callbacks/callback.h"

namespace lockstep::comm {
class Communicator;
}
namespace lockstep::plan {
class ParameterStore;
}

namespace lockstep::train {

class GrowVocabulary final : public Callback {
 public:
  // A column of the ids of a sample: its field, and the row, of all fields, that a missing id gets.
  struct Column {
    std::int64_t field = 0, missing = 0;
  };
  struct Setup {
    data::VocabularyOptions options{};
    std::vector<Column> columns{};  // of a sample's ids; empty: one for each field
    std::string buffer{};           // the parameter that gets the state for checkpoints and hashes
    std::int64_t hash_every = 0;    // steps between hashes of all tensors (Options::hash_every); 0: none
    // The parameters of the trainer; called once the session is built.
    std::function<plan::ParameterStore&()> store{};
    // Called on all ranks, in step with each other, with rows that new ids get after others: tables begin anew there.
    // Empty: rows keep their values.
    std::function<void(std::span<const std::int64_t> rows)> reset{};
  };
  GrowVocabulary(Setup setup, const comm::Communicator& comm);

  // Takes the ids of a training batch, this rank's part of a step, and writes their rows. Collective.
  void grow(data::Batch& batch);
  // Writes the rows of ids; unknown ids have the field's row 0.
  void look_up(data::Batch& batch);

  std::int64_t known() const;  // ids with a row, of all fields

  void before_checkpoint(std::int64_t step) override;
  void rolled_back(std::int64_t /*step*/) override { loaded_ = false; }
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;

 private:
  void load();
  void write_state();
  std::vector<data::Sighting> sightings(const data::Batch& batch) const;

  Setup setup_;
  data::Vocabulary vocabulary_;
  const comm::Communicator& comm_;
  bool loaded_ = false;
  std::int64_t reused_ = 0;  // rows that ids got which other ids had before
};

}  // namespace lockstep::train
