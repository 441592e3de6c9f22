#include "lockstep/infer/local_tables.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

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

namespace {

// Returns the number of the first row of a tensor `name` that is the table `own` (0) or a piece of it, which stands in
// its name; empty: it is of something else.
std::optional<std::int64_t> first_row(const std::string& name, const std::string& own) {
  if (name == own) return 0;
  if (!name.starts_with(own + "/")) return {};
  std::int64_t first = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + own.size() + 1, end, first);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {};
  return first;
}

bool fits_table(const io::TensorInfo& info, const Table& table, std::int64_t first, bool is_whole) {
  return info.shape.rank() == 2 && info.shape[1] == table.width && is_floating(info.dtype) && first >= 0 &&
         info.shape[0] <= table.rows - first && (!is_whole || info.shape[0] == table.rows);
}

// Returns why the pieces are not the rows of a table, each once; empty: they are.
std::string fault_of(std::vector<LocalTables::Piece> pieces, const NamedTable& table) {
  std::ranges::sort(pieces, {}, [](const LocalTables::Piece& piece) { return std::pair(piece.first, piece.rows); });
  std::int64_t next = 0;
  for (const LocalTables::Piece& piece : pieces) {
    if (piece.first != next)
      return formatted("{}: a piece of its rows begins at row {} instead of {}", table.name, piece.first, next);
    next += piece.rows;
  }
  if (next == table.table->rows) return "";
  return formatted("{}: pieces of {} rows instead of {}", table.name, next, table.table->rows);
}

}  // namespace

// Matches one table with the tensors that no table before it has.
void LocalTables::match_table(std::size_t table, std::span<const io::TensorInfo> tensors,
                              const checkpoint::LoadOptions& options, Match& match) const {
  const NamedTable& named = tables_[table].named;
  const std::string& own = named.name;
  checkpoint::LoadReport& report = match.report;
  const bool kept = std::ranges::find(options.keep, own) != options.keep.end();
  bool found = false, is_wrong = false;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string& full = tensors[i].name;
    if (match.names.contains(full) || !full.starts_with(options.prefix)) continue;
    const std::string name = full.substr(options.prefix.size());
    if (kept) {
      if (name != own && !name.starts_with(own + "/")) continue;
      if (report.skipped.empty() || report.skipped.back() != own) report.skipped.push_back(own);
    } else {
      const std::optional<std::int64_t> first = first_row(name, own);
      if (!first) continue;
      found = true;
      if (fits_table(tensors[i], *named.table, *first, name == own)) {
        pieces.push_back({.table = table, .tensor = i, .first = *first, .rows = tensors[i].shape[0]});
      } else {
        is_wrong = true;
        report.mismatched.push_back(
            formatted("{} {} instead of {}", name, tensors[i].shape.str(), named.table->shape().str()));
      }
    }
    match.names.insert(full);
  }
  if (kept) return;
  if (!found) return report.missing.push_back(own);
  const std::string fault = is_wrong ? "" : fault_of(pieces, named);
  if (!fault.empty()) report.mismatched.push_back(fault);
  if (is_wrong || !fault.empty()) return;
  report.loaded.push_back(own);
  match.pieces.insert(match.pieces.end(), pieces.begin(), pieces.end());
}

LocalTables::Match LocalTables::match(std::span<const io::TensorInfo> tensors,
                                      const checkpoint::LoadOptions& options) const {
  Match match;
  for (std::size_t table = 0; table < tables_.size(); ++table) match_table(table, tensors, options, match);
  return match;
}

void LocalTables::load(const io::TensorSource& tensors, const Match& match) {
  for (const Piece& piece : match.pieces) copy_rows(tensors, piece);
}

void LocalTables::copy_rows(const io::TensorSource& source, const Piece& piece) {
  Values& values = tables_[piece.table];
  const auto row = static_cast<std::size_t>(values.named.table->width) * size_of(dtype_);
  const std::int64_t part =
      source.rows ? std::max<std::int64_t>(kLoadBytes / static_cast<std::int64_t>(row), 1) : piece.rows;
  for (std::int64_t begin = 0; begin < piece.rows; begin += part) {
    const Tensor stored = source.read_rows(piece.tensor, {begin, std::min(begin + part, piece.rows)});
    std::byte* const to = values.tensor.raw() + static_cast<std::size_t>(piece.first + begin) * row;
    if (stored.dtype() == dtype_) {
      std::memcpy(to, stored.raw(), stored.bytes());
    } else {
      const Tensor typed = stored.to(dtype_);
      std::memcpy(to, typed.raw(), typed.bytes());
    }
  }
}

}  // namespace lockstep::infer
