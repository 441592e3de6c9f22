// The state of sparse tables as tensors with names, for checkpoints: values "model/NAME", states of the rules
// "optimizer/STATE/NAME". A tensor of more than kPieceElements elements is several tensors, "NAME/FIRSTROW", of whole
// rows. Neither names nor sizes depend on the number of ranks, or on where rows lie. Functions are collective; one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
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
  // Each piece that a load replaces, and the place of its tensor in the source.
  using Match = std::vector<std::pair<const Piece*, std::size_t>>;
  // Finds the tensors of the state, or of the values alone, and changes nothing; no communication. Throws Error that
  // lists the missing ones and those of another shape.
  Match match(std::span<const io::TensorInfo> tensors, bool weights_only) const;
  // Replaces the matched pieces by the source's tensors, which are equal on all ranks. The caller then waits for all
  // ranks. After a load of the state, the changed rows are those that the source lists (checkpoint/increment.h).
  void load(const io::TensorSource& source, const Match& found, bool weights_only) const;

  // The tensor of a weights file that has a piece's rows: the piece itself, or its whole table.
  struct Stored {
    std::optional<std::size_t> tensor = {};  // empty: none
    bool is_piece = false;
    std::int64_t first = 0;  // the number of the piece's first row in the tensor
  };
  // Finds the values in a weights file, whole or in pieces, and adds to its report; changes nothing; no communication.
  // Throws the Error of a strict load, with `file`. Returns one entry for each of pieces().
  std::vector<Stored> match_weights(std::span<const io::TensorInfo> tensors, const checkpoint::LoadOptions& options,
                                    const std::string& file, checkpoint::LoadReport& report) const;
  // Replaces values by rank 0's tensors, which it has matched; reads at most kPieceElements elements at a time. All
  // ranks throw the Error of a reader. The caller then waits for all ranks.
  void load_weights(const comm::Communicator& comm, const io::TensorSource& of_root,
                    const std::vector<Stored>& found) const;
  // Returns the tensors of a weights file that are of no table; what `source` refers to must outlive the result.
  io::TensorSource without_weights(const io::TensorSource& source, const std::string& prefix) const;
  // Returns the tensors of a checkpoint that are not of tables; what `source` refers to must outlive the result.
  io::TensorSource without_tables(const io::TensorSource& source) const;

 private:
  void load_changes(const io::TensorSource& source) const;

  parallel::TableEngine* tables_;
  std::vector<Piece> pieces_;
};

}  // namespace lockstep::train
