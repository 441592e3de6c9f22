// Tells the tables of a model, if they are sharded, the ids that a step will look up, before its passes: those of
// fields of the batch. They travel in the step before if the next batch is known by then. One thread; all ranks make
// the same calls.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/parallel/tables/table_use.h"
#include "lockstep/train/prepare/prepared_model.h"
#include "lockstep/train/runner/batch_feed.h"

namespace lockstep::train {

class TableLookahead {
 public:
  // Both must outlive this object.
  TableLookahead(PreparedModel& prepared, BatchFeed& feed) : prepared_(prepared), feed_(feed) {}

  // The batch of the step after the next one; its memory is read in that begin().
  void expect(const LocalBatch& next) { next_ = next; }
  // Begins the lookups of a step, and announces those of the expected batch. Between begin_step() and the first pass.
  void begin(const LocalBatch& local);
  void end_step() { next_.reset(); }  // the step is complete, and is not run again

 private:
  struct Lookup {
    const Table* table;
    const data::Field* field;  // null: its ids are no field, in the order of the batch
  };
  struct Uses {
    std::vector<parallel::TableUse> known;
    bool more = false;  // there are other lookups
  };
  const std::vector<Lookup>& lookups_of(const plan::Plan& plan);
  const Uses& uses_of(const LocalBatch& local);
  void add_pass(const LocalBatch& local, Range rows, Uses& uses);

  PreparedModel& prepared_;
  BatchFeed& feed_;
  std::map<const plan::Plan*, std::vector<Lookup>> lookups_;
  std::optional<LocalBatch> next_;
  Uses uses_;  // keeps its memory
  // The position of the batch whose ids were announced: epoch, offset and size.
  std::optional<std::array<std::int64_t, 3>> announced_;
};

}  // namespace lockstep::train
