// The state of sparse tables as tensors with names, for checkpoints: values "model/NAME", states of the rules
// "optimizer/STATE/NAME". A tensor of more than kPieceElements elements is several tensors, "NAME/FIRSTROW", of whole
// rows. Neither names nor sizes depend on the number of ranks, or on where rows lie. Functions are collective; one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/load_report.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/core/partition.h"
#include "lockstep/io/named_tensor.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/parallel/tables/table_engine.h"

namespace lockstep::train {

// How a checkpoint takes the sparse tables; the same on all ranks.
struct TableSave {
  enum class Rows : std::uint8_t {
    All,
    AllAsBase,  // all, and Changed counts from here on (TableOptions::changes)
    Changed  // of each tensor the rows that changed since AllAsBase, as an increment has them (checkpoint/increment.h)
  };
  Rows rows = Rows::All;
  std::function<void(io::NamedTensor)> take = {};  // called on rank 0
};

class TableState {
 public:
  static constexpr std::int64_t kPieceElements = std::int64_t{1} << 24;

  // `tables` outlives this; null: the model has none.
  explicit TableState(parallel::TableEngine* tables);

  struct Piece {
    io::TensorInfo info;
    const parallel::TableTensor* tensor;
    Range rows;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }
  bool contains(const std::string& name) const;
  std::size_t bytes() const;
  // Returns a piece: on rank 0, and where tables are replicated on other ranks with `wanted`; else an empty tensor.
  Tensor read(const Piece& piece, bool wanted) const;
  // Returns all pieces that read() returns here.
  std::vector<io::NamedTensor> read(bool wanted) const;
  // Passes the tensors of a checkpoint to `save.take`, one at a time, on rank 0.
  void save(const TableSave& save) const;
  // Returns the size of the tensors of a save with TableSave::Rows::Changed, on all ranks.
  std::size_t changed_bytes() const;
  // Replaces the state, or the values alone, by the source's tensors, which are equal on all ranks. Throws Error that
  // lists the missing ones and those of another shape before it writes. The caller then waits for all ranks. After a
  // load of the state, the changed rows are those that the source lists (checkpoint/increment.h).
  void load(const io::TensorSource& source, bool weights_only) const;
  // Replaces values by rank 0's tensors of a weights file, whole or in pieces, and adds to its report; reads at most
  // kPieceElements elements at a time. Returns the tensors that are of no table, on rank 0; what `of_root` refers to
  // must outlive them. All ranks throw the Error of a strict load, before values change, and that of a reader. The
  // caller then waits for all ranks.
  io::TensorSource load_weights(const comm::Communicator& comm, const io::TensorSource& of_root,
                                const checkpoint::LoadOptions& options, checkpoint::LoadReport& report) const;
  // Returns the tensors of `source` that are not of tables; what `source` refers to must outlive the result.
  io::TensorSource without_tables(const io::TensorSource& source) const;

 private:
  void load_changes(const io::TensorSource& source) const;

  parallel::TableEngine* tables_;
  std::vector<Piece> pieces_;
};

}  // namespace lockstep::train
