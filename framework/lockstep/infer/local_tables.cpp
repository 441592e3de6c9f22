#include "lockstep/infer/local_tables.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "lockstep/core/error.h"

namespace lockstep::infer {

LocalTables::LocalTables(std::vector<NamedTable> tables, DType dtype, std::uint64_t seed) : dtype_(dtype) {
  for (NamedTable& named : tables) {
    const Table& table = *named.table;
    Values values{std::move(named), Tensor(table.shape(), dtype)};
    std::vector<double> row(static_cast<std::size_t>(table.width));
    const auto fill = [&]<class T>(T) {
      T* to = values.tensor.data<T>().data();
      for (std::int64_t r = 0; r < table.rows; ++r) {
        initial_row(table, values.named.name, seed, r, row);
        to = std::ranges::transform(row, to, [](double v) { return static_cast<T>(v); }).out;
      }
    };
    dtype == DType::F64 ? fill(double{}) : fill(float{});
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

// Takes the rows of a tensor that is the table or a piece of it, and returns their number: 0 if the tensor does not
// fit. Empty: it is of something else.
std::optional<std::int64_t> LocalTables::take(Values& values, const Given& given,
                                              checkpoint::LoadReport& report) const {
  const std::string &own = values.named.name, &name = given.name;
  if (name != own && !name.starts_with(own + "/")) return {};
  std::int64_t first = 0;
  if (name.size() > own.size()) {
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data() + own.size() + 1, end, first).ptr != end) return {};
  }
  const io::TensorInfo& info = given.source.infos[given.index];
  const Table& table = *values.named.table;
  const std::int64_t rows = info.shape.rank() == 2 ? info.shape[0] : -1;
  if (rows < 0 || info.shape[1] != table.width || !is_floating(info.dtype) || first < 0 || rows > table.rows - first ||
      (name == own && rows != table.rows)) {
    report.mismatched.push_back(formatted("{} {} instead of {}", name, info.shape.str(), table.shape().str()));
    return 0;
  }
  copy_rows(values, given, first);
  return rows;
}

// Copies all rows of the tensor to the rows of the table from `first` on.
void LocalTables::copy_rows(Values& values, const Given& given, std::int64_t first) const {
  const io::TensorInfo& info = given.source.infos[given.index];
  const auto row = static_cast<std::size_t>(values.named.table->width) * size_of(dtype_);
  const std::int64_t part =
      given.source.rows ? std::max<std::int64_t>(kLoadBytes / static_cast<std::int64_t>(row), 1) : info.shape[0];
  for (std::int64_t begin = 0; begin < info.shape[0]; begin += part) {
    const Tensor stored = given.source.read_rows(given.index, {begin, std::min(begin + part, info.shape[0])});
    std::byte* const to = values.tensor.raw() + static_cast<std::size_t>(first + begin) * row;
    if (stored.dtype() == dtype_) {
      std::memcpy(to, stored.raw(), stored.bytes());
    } else {
      const Tensor typed = stored.to(dtype_);
      std::memcpy(to, typed.raw(), typed.bytes());
    }
  }
}

io::TensorSource LocalTables::load(const io::TensorSource& tensors, const checkpoint::LoadOptions& options,
                                   checkpoint::LoadReport& report) {
  std::set<std::string> taken;
  for (Values& values : tables_) {
    const std::string& own = values.named.name;
    const bool kept = std::ranges::find(options.keep, own) != options.keep.end();
    bool found = false;
    std::int64_t rows = 0;
    const std::size_t mismatched = report.mismatched.size();
    for (std::size_t i = 0; i < tensors.infos.size(); ++i) {
      const std::string& full = tensors.infos[i].name;
      if (taken.contains(full) || !full.starts_with(options.prefix)) continue;
      const Given given{tensors, i, full.substr(options.prefix.size())};
      const bool skips = kept && (given.name == own || given.name.starts_with(own + "/"));
      if (skips && (report.skipped.empty() || report.skipped.back() != own)) report.skipped.push_back(own);
      const std::optional<std::int64_t> mine = skips ? std::nullopt : take(values, given, report);
      found = found || mine;
      rows += mine.value_or(0);
      if (skips || mine) taken.insert(full);
    }
    const std::int64_t expected = values.named.table->rows;
    if (found && rows == expected) report.loaded.push_back(own);
    if (!found && !kept) report.missing.push_back(own);
    if (found && rows != expected && report.mismatched.size() == mismatched)
      report.mismatched.push_back(formatted("{}: pieces of {} rows instead of {}", own, rows, expected));
  }
  return io::select(tensors, [&](const io::TensorInfo& info) { return !taken.contains(info.name); });
}

}  // namespace lockstep::infer
