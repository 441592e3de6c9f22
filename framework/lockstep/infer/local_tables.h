// The sparse tables of a Predictor: all rows in this process, without gradients. One thread at a time.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/checkpoint/load_report.h"
#include "lockstep/graph/table.h"
#include "lockstep/io/tensor_source.h"

namespace lockstep::infer {

class LocalTables : public TableAccess {
 public:
  // Writes initial values; seed: of the initial values. `tables` must outlive this.
  LocalTables(std::vector<NamedTable> tables, DType dtype, std::uint64_t seed);

  DType dtype() const override { return dtype_; }
  void lookup(const Table& table, std::span<const std::int64_t> rows, void* values) override;
  void add_gradient(const Table&, std::span<const std::int64_t>, const void*) override {}  // nothing learns here

  // The rows of a table that a tensor of a source has: all, or those from `first` on.
  struct Piece {
    std::size_t table = 0, tensor = 0;  // their places here and in the source
    std::int64_t first = 0, rows = 0;
  };
  struct Match {
    std::vector<Piece> pieces = {};      // of the tables that the source has whole
    std::set<std::string> names = {};    // of all tensors that belong to tables, in `pieces` or not
    checkpoint::LoadReport report = {};  // what will be loaded, is missing or does not fit
  };
  // Finds the tensors that belong to the tables, whole or in pieces "NAME/FIRSTROW" that have each row once; changes
  // nothing. f32 and f64 match each other.
  Match match(std::span<const io::TensorInfo> tensors, const checkpoint::LoadOptions& options) const;
  // Replaces values by the matched tensors of the same source, kLoadBytes at a time.
  void load(const io::TensorSource& tensors, const Match& match);

 private:
  static constexpr std::int64_t kLoadBytes = std::int64_t{16} << 20;
  struct Values {
    NamedTable named;
    Tensor tensor;  // (rows, width)
  };
  void match_table(std::size_t table, std::span<const io::TensorInfo> tensors, const checkpoint::LoadOptions& options,
                   Match& match) const;
  void copy_rows(const io::TensorSource& source, const Piece& piece);

  DType dtype_;
  std::vector<Values> tables_;
};

}  // namespace lockstep::infer
