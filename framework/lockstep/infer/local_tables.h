// The sparse tables of a Predictor: all rows in this process, without gradients. One thread at a time.
#pragma once

#include <optional>
#include <span>
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

  // Replaces values by the tensors that belong to the tables, whole or in pieces "NAME/FIRSTROW", kLoadBytes at a time.
  // Adds to the report what was loaded, is missing or does not fit. f32 and f64 match each other. Returns the other
  // tensors; what `tensors` refers to must outlive them.
  io::TensorSource load(const io::TensorSource& tensors, const checkpoint::LoadOptions& options,
                        checkpoint::LoadReport& report);

 private:
  static constexpr std::int64_t kLoadBytes = std::int64_t{16} << 20;
  struct Values {
    NamedTable named;
    Tensor tensor;  // (rows, width)
  };
  // A tensor of a source, by its name without the prefix.
  struct Given {
    const io::TensorSource& source;
    std::size_t index;
    std::string name;
  };
  std::optional<std::int64_t> take(Values& values, const Given& given, checkpoint::LoadReport& report) const;
  void copy_rows(Values& values, const Given& given, std::int64_t first) const;

  DType dtype_;
  std::vector<Values> tables_;
};

}  // namespace lockstep::infer
