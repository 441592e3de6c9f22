#include "lockstep/infer/local_tables.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::infer {

LocalTables::LocalTables(std::vector<NamedTable> tables, DType dtype, std::uint64_t seed) : dtype_(dtype) {
  for (NamedTable& named : tables) {
    const Table& table = *named.table;
    Values values{std::move(named), Tensor(table.shape(), DType::F64)};
    for (std::int64_t row = 0; row < table.rows; ++row) {
      const auto begin = static_cast<std::size_t>(row * table.width);
      initial_row(table, values.named.name, seed, row,
                  values.tensor.data<double>().subspan(begin, static_cast<std::size_t>(table.width)));
    }
    if (dtype != DType::F64) values.tensor = values.tensor.to(dtype);
    tables_.push_back(std::move(values));
  }
}

void LocalTables::lookup(const Table& table, std::span<const std::int64_t> rows, void* values) {
  const auto found = std::ranges::find_if(tables_, [&](const Values& v) { return v.named.table == &table; });
  check(found != tables_.end(), "predictor", "a lookup in a table that is not in the model");
  const std::size_t bytes = static_cast<std::size_t>(table.width) * size_of(dtype_);
  auto* to = static_cast<std::byte*>(values);
  for (const std::int64_t row : rows) {
    std::memcpy(to, found->tensor.raw() + static_cast<std::size_t>(row) * bytes, bytes);
    to += bytes;
  }
}

// Returns whether the tensor belongs to the table, as a whole or as a piece.
bool LocalTables::take(Values& values, const io::NamedTensor& tensor, const std::string& name,
                       checkpoint::LoadReport& report) const {
  const std::string& own = values.named.name;
  if (name != own && !name.starts_with(own + "/")) return false;
  std::int64_t first = 0;
  if (name.size() > own.size()) {
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data() + own.size() + 1, end, first).ptr != end) return false;
  }
  const Shape& shape = tensor.tensor.shape();
  const Table& table = *values.named.table;
  const std::int64_t rows = shape.rank() == 2 ? shape[0] : -1;
  if (rows < 0 || shape[1] != table.width || !is_floating(tensor.tensor.dtype()) || first + rows > table.rows ||
      (name == own && rows != table.rows)) {
    report.mismatched.push_back(formatted("{} {} instead of {}", name, shape.str(), table.shape().str()));
    return true;
  }
  const Tensor typed = tensor.tensor.to(dtype_);
  const std::size_t row = static_cast<std::size_t>(table.width) * size_of(dtype_);
  std::memcpy(values.tensor.raw() + static_cast<std::size_t>(first) * row, typed.raw(), typed.bytes());
  if (report.loaded.empty() || report.loaded.back() != own) report.loaded.push_back(own);
  return true;
}

void LocalTables::load(std::vector<io::NamedTensor>& tensors, const checkpoint::LoadOptions& options,
                       checkpoint::LoadReport& report) {
  for (Values& values : tables_) {
    const std::string& own = values.named.name;
    const bool kept = std::ranges::find(options.keep, own) != options.keep.end();
    bool found = false;
    std::erase_if(tensors, [&](const io::NamedTensor& tensor) {
      if (!tensor.name.starts_with(options.prefix)) return false;
      const std::string name = tensor.name.substr(options.prefix.size());
      if (kept && name == own) return report.skipped.push_back(own), true;
      const bool mine = take(values, tensor, name, report);
      found = found || mine;
      return mine;
    });
    if (!found && !kept) report.missing.push_back(own);
  }
}

}  // namespace lockstep::infer
