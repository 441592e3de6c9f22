// The sparse tables of a Predictor: all rows in this process, without gradients. One thread at a time.
#pragma once

#include <span>
#include <vector>

#include "lockstep/checkpoint/load_report.h"
#include "lockstep/graph/table.h"
#include "lockstep/io/named_tensor.h"

namespace lockstep::infer {

class LocalTables : public TableAccess {
 public:
  // Writes initial values; seed: of the initial values. `tables` must outlive this.
  LocalTables(std::vector<NamedTable> tables, DType dtype, std::uint64_t seed);

  DType dtype() const override { return dtype_; }
  void lookup(const Table& table, std::span<const std::int64_t> rows, void* values) override;
  void add_gradient(const Table&, std::span<const std::int64_t>, const void*) override {}  // nothing learns here

  // Replaces values by the tensors that belong to the tables, whole or in pieces "NAME/FIRSTROW", and removes these
  // from the list. Adds to the report what was loaded, is missing or does not fit. f32 and f64 match each other.
  void load(std::vector<io::NamedTensor>& tensors, const checkpoint::LoadOptions& options,
            checkpoint::LoadReport& report);

 private:
  struct Values {
    NamedTable named;
    Tensor tensor;  // (rows, width)
  };
  bool take(Values& values, const io::NamedTensor& tensor, const std::string& name,
            checkpoint::LoadReport& report) const;

  DType dtype_;
  std::vector<Values> tables_;
};

}  // namespace lockstep::infer
