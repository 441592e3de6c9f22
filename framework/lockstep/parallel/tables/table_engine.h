// The sparse tables of a training: lookups and gradients of a plan's nodes, the exchange of the gradients' rows, and
// the update of the rows that a step has used. A composition of TableStore, TableLookups and RowReduction. It binds
// itself to the tables. All ranks make the same calls, except for lookups and gradients; one thread. Functions throw
// Error where MPI or a rank fails.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/core/tensor.h"
#include "lockstep/core/trace.h"
#include "lockstep/graph/table.h"
#include "lockstep/parallel/exchange/node_memory.h"
#include "lockstep/parallel/tables/table_options.h"
#include "lockstep/parallel/tables/table_use.h"
#include "lockstep/parallel/tree/world_layout.h"
#include "lockstep/parallel/update/further_gradients.h"

namespace lockstep::parallel {

// A tensor of the tables' state: the values of a table, or a state of its rule.
struct TableTensor {
  std::string table;  // full name
  std::string state;  // empty: the values
  Shape shape;        // rows first
  std::size_t number = 0;
  int part = -1;  // index of the state; -1: the values
};

// Rows of a tensor that changed.
struct RowChanges {
  Tensor numbers = {};  // I32, rising, counted from the first row of the range that was asked for
  Tensor values = {};   // the tensor's shape, with as many rows as there are numbers
};

class TableEngine : public TableAccess, public FurtherGradients {
 public:
  struct Setup {
    std::vector<NamedTable> tables;
    TableOptions options = {};
    DType dtype = DType::F32;
    std::uint64_t seed = 0;
    double clip_value = 0;  // largest absolute value of an element of a row's mean gradient; 0: any
  };
  // Collective; `comm` and `memory` outlive the engine. Throws Error if a table has a store already.
  static std::shared_ptr<TableEngine> make(const comm::Communicator& comm, const WorldLayout& world, NodeMemory& memory,
                                           const Setup& setup);

  // Sets a function that is called again and again while a lookup waits for other ranks, as these may wait for
  // communication that `work` drives.
  virtual void while_waiting(std::function<void()> work) = 0;

  // --- a step: begin_step(); for each shard begin_shard(), any number of passes, end_shard(); and at last end_passes()
  virtual void begin_step() = 0;
  // Of sharded tables, for lookups whose ids are known before the passes of a step: announce() starts to send the ids
  // of a step, as early as in the step before; begin_lookups() follows begin_step() with the lookups of the present
  // step, which reads the rows of those that were announced last. `more`: this rank also makes other lookups. All ranks
  // make the same calls; a step may have none of them.
  virtual bool is_sharded() const = 0;
  virtual void announce(std::span<const TableUse> uses) = 0;
  virtual void begin_lookups(std::span<const TableUse> uses, bool more) = 0;
  virtual void begin_shard() = 0;
  // The next run of a plan has this number of gradient nodes; `last`: it is the last run of the shard.
  virtual void begin_pass(int gradients, bool last) = 0;
  virtual void end_shard() = 0;
  // Lookups outside of a step, in which all ranks take part: between begin_passes() and end_passes().
  virtual void begin_passes() = 0;
  virtual void end_passes() = 0;

  // --- between steps, collective
  virtual const std::vector<TableTensor>& tensors() const = 0;
  virtual bool is_root() const = 0;  // whether this is rank 0
  // Returns rows [range) of a tensor: with `wanted` on rank 0, and where tables are replicated on other ranks too; else
  // an empty tensor.
  virtual Tensor read(const TableTensor& tensor, Range rows, bool wanted) = 0;
  // Replaces rows [range) by `values`, equal on all ranks; with shared tables, ranks may read them after a barrier.
  virtual void write(const TableTensor& tensor, Range rows, const Tensor& values) = 0;
  // Gives rows their first values and states again, as in a new run; the list is the same on all ranks.
  virtual void reset(const Table& table, std::span<const std::int64_t> rows) = 0;
  // --- with TableOptions::changes, between steps, collective: the rows that changed since the last clear_changes(), by
  // a step, reset() or write()
  virtual void clear_changes() = 0;
  // Notes that a row changed, if this rank owns it.
  virtual void mark_change(std::size_t table, std::int64_t row) = 0;
  // Returns the number of changed rows by table, on all ranks.
  virtual std::vector<std::int64_t> count_changes() = 0;
  // Returns the changed rows of a range: on rank 0; else empty tensors.
  virtual RowChanges read_changes(const TableTensor& tensor, Range rows) = 0;
  virtual void settle() = 0;                 // waits until the values of all rows may be read
  virtual std::size_t bytes() const = 0;     // of this rank's or this node's tables
  virtual std::string describe() const = 0;  // for the log
  virtual void note_in(Trace* trace) = 0;    // records spans of messages and updates; null: records nothing
};

}  // namespace lockstep::parallel
