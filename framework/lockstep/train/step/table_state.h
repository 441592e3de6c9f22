// The state of sparse tables as tensors with names, for checkpoints: values "model/NAME", states of the rules
// "optimizer/STATE/NAME". A tensor of more than kPieceElements elements is several tensors, "NAME/FIRSTROW", of whole
// rows. Neither names nor sizes depend on the number of ranks, or on where rows lie. Functions are collective; one
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/checkpoint/load_report.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/core/partition.h"
#include "lockstep/io/named_tensor.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/parallel/tables/table_engine.h"

namespace lockstep::train {

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
  // Replaces the state, or the values alone, by the source's tensors, which are equal on all ranks. Throws Error that
  // lists the missing ones and those of another shape before it writes. The caller then waits for all ranks.
  void load(const io::TensorSource& source, bool weights_only) const;
  // Replaces values by rank 0's tensors of a weights file, whole or in pieces, removes those from its list, and adds to
  // its report. All ranks throw the Error of a strict load, before values change. The caller then waits for all ranks.
  void load_weights(const comm::Communicator& comm, std::vector<io::NamedTensor>& of_root,
                    const checkpoint::LoadOptions& options, checkpoint::LoadReport& report) const;
  // Returns the tensors of `source` that are not of tables; `source` must outlive the result.
  io::TensorSource without_tables(const io::TensorSource& source) const;

 private:
  parallel::TableEngine* tables_;
  std::vector<Piece> pieces_;
};

}  // namespace lockstep::train
