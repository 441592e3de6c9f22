#include "data/datasets/click_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "data/datasets/csv_columns.h"
#include "data/datasets/csv_records.h"
#include "data/datasets/id_rows.h"
#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/core/random.h"
#include "lockstep/data/file_pattern.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kClickTableSite = "clicks";

bool is_missing_cell(std::string_view text) {
  constexpr std::array<std::string_view, 8> kMissing{"", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL"};
  return std::ranges::find(kMissing, text) != kMissing.end();
}

std::optional<double> number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !(std::abs(value) <= 0x1p126)) return {};
  return value;
}

}  // namespace

std::int64_t parse_id(std::string_view cell, IdForm form, bool texts, std::string_view site,
                      const std::function<std::string()>& place) {
  const std::string_view text = stripped_cell(cell);
  if (is_missing_cell(text)) return kMissingId;
  std::int64_t value = 0;
  const bool hexadecimal = form == IdForm::Hexadecimal;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  const bool whole = code == std::errc() && end == text.data() + text.size();
  if (whole && value >= 0) return value;
  if (hexadecimal)
    fail(site, "{}: the id is '{}', expected hexadecimal digits of at most 63 bits", place(), shown_cell(text));
  if (whole) fail(site, "{}: the id is {}, expected a number from 0 on, or a text", place(), value);
  if (!texts)
    fail(site, "{}: the id is the text '{}', expected a whole number from 0 on, which is a row of the table; {}",
         place(), shown_cell(text), kIdRemedies);
  return static_cast<std::int64_t>(hash_name(text) >> 1);
}

// Reads one file after the other into the table.
class ClickTable::Reader {
 public:
  explicit Reader(ClickTable& table) : table_(table), options_(table.options_) {}

  void read(const std::filesystem::path& path) {
    site_ = path.string();
    table_.files_.push_back({site_, table_.size()});
    bool begun = false;
    read_csv_records(path, options_.block, [&](std::span<const CsvRecord> records) {
      if (!begun && !records.empty()) {
        find_columns(records.front());
        begun = true;
        if (options_.header) records = records.subspan(1);
      }
      for (const CsvRecord& record : records) add(record);
    });
    check(begun, site_, "the file has no records, expected at least {}",
          options_.header ? "the names of the columns" : "one");
  }

 private:
  void find_columns(const CsvRecord& first) {
    const CsvOptions wanted{.inputs = options_.dense,
                            .targets = options_.ids,
                            .label = options_.label,
                            .header = options_.header,
                            .separator = options_.separator};
    if (options_.columns > 0) {
      split_cells(site_, first, options_.separator, cells_, unquoted_);
      check_columns(first, options_.columns);
    }
    columns_ = choose_columns(site_, first, wanted);
    const bool is_first = table_.files_.size() == 1;
    const auto names = [&](const std::vector<std::size_t>& list, std::vector<std::string>& known) {
      for (const std::size_t c : list) {
        if (is_first) known.push_back(columns_.plain_name(c));
      }
      expect_columns(site_, columns_, list, known);
    };
    names(columns_.inputs, table_.dense_names_);
    names(columns_.targets, table_.id_names_);
    if (is_first) table_.id_places_ = places_of(options_.bags, table_.id_names_);
  }

  std::string place(const CsvCell& cell, std::size_t column) const {
    return formatted("line {}, column {}", cell.line, columns_.name(column));
  }

  void check_columns(const CsvRecord& record, std::size_t expected) const {
    if (cells_.size() != expected)
      fail(site_, "line {}: {} columns, expected {}", record.line, cells_.size(), expected);
  }

  void add(const CsvRecord& record) {
    split_cells(site_, record, options_.separator, cells_, unquoted_);
    check_columns(record, columns_.count);
    for (const std::size_t c : columns_.inputs) table_.dense_.push_back(dense(cells_[c], c));
    for (std::size_t f = 0; f < columns_.targets.size(); ++f) add_ids(columns_.targets[f], table_.id_places_[f]);
    if (columns_.label) table_.labels_.push_back(label(cells_[*columns_.label], *columns_.label));
    if (record.line > std::numeric_limits<std::uint32_t>::max())
      fail(site_, "line {}: more than 2^32 lines, expected fewer in one file", record.line);
    table_.lines_.push_back(static_cast<std::uint32_t>(record.line));
  }

  // The ids of a cell: one, or those of a bag with so many places.
  void add_ids(std::size_t column, std::int64_t places) {
    const CsvCell& cell = cells_[column];
    const auto parsed = [&](std::string_view text) {
      return parse_id(text, options_.form, options_.texts, site_, [&] { return place(cell, column); });
    };
    if (places == 0) {
      table_.ids_.push_back(parsed(cell.text));
      return;
    }
    std::int64_t used = 0;
    for (std::size_t begin = 0; begin <= cell.text.size();) {
      const std::size_t end = std::min(cell.text.find(options_.bag_separator, begin), cell.text.size());
      const std::int64_t id = parsed(cell.text.substr(begin, end - begin));
      begin = end + 1;
      if (id == kMissingId) continue;
      if (used == places)
        fail(site_, "{}: a bag of more than {} ids, expected at most {}; --bags FIELD:N takes up to N",
             place(cell, column), places, places);
      table_.ids_.push_back(id);
      ++used;
    }
    table_.ids_.insert(table_.ids_.end(), static_cast<std::size_t>(places - used), kMissingId);
  }

  float dense(const CsvCell& cell, std::size_t column) const {
    const std::string_view text = stripped_cell(cell.text);
    if (is_missing_cell(text)) {
      if (options_.counts) return 0;
      fail(site_, "{}: the value is missing ('{}'), expected a number", place(cell, column), text);
    }
    const std::optional<double> value = number_of(text);
    if (!value) fail(site_, "{}: '{}', expected a finite number that f32 holds", place(cell, column), shown_cell(text));
    return static_cast<float>(options_.counts ? math::log(1 + std::max(*value, 0.0)) : *value);
  }

  float label(const CsvCell& cell, std::size_t column) const {
    const std::optional<double> value = number_of(stripped_cell(cell.text));
    if (!value) fail(site_, "{}: the label is '{}', expected a number", place(cell, column), shown_cell(cell.text));
    if (options_.positive) return *value >= *options_.positive ? 1.0F : 0.0F;
    if (!(*value >= 0 && *value <= 1))
      fail(site_, "{}: the label is {}, expected 0 or 1, or a number between", place(cell, column), *value);
    return static_cast<float>(*value);
  }

  ClickTable& table_;
  const ClickTableOptions& options_;
  std::string site_;
  CsvColumns columns_;
  std::vector<CsvCell> cells_;
  std::string unquoted_;
};

ClickTableOptions criteo_options(bool labelled) {
  constexpr int kCounts = 13, kIds = 26;
  const int first = labelled ? 1 : 0;
  ClickTableOptions options{.label = labelled ? std::string("0") : std::string(),
                            .header = false,
                            .separator = '\t',
                            .columns = static_cast<std::size_t>(first + kCounts + kIds),
                            .form = IdForm::Hexadecimal,
                            .counts = true};
  for (int c = 0; c < kCounts; ++c) options.dense.push_back(formatted("{}", first + c));
  for (int c = 0; c < kIds; ++c) options.ids.push_back(formatted("{}", first + kCounts + c));
  return options;
}

ClickTableOptions ratings_options(double positive, bool labelled) {
  ClickTableOptions options{.ids = {"userId", "movieId"}, .positive = positive};
  if (labelled) options.label = "rating";
  return options;
}

ClickTable::ClickTable(ClickTableOptions options) : options_(std::move(options)) {
  check(!options_.ids.empty(), kClickTableSite, "there are no columns of ids, expected at least one");
  check(options_.block > 0, kClickTableSite, "blocks of 0 bytes, expected at least 1");
  Reader reader(*this);
  for (const std::filesystem::path& path : data::expand_files(options_.files, options_.dir)) reader.read(path);
  check(!lines_.empty(), kClickTableSite, "{}: no records, expected at least one{}", joined(options_.files, ", "),
        options_.header ? " after the header" : "");
  const auto width = [](const std::vector<std::string>& names) { return Shape{std::ssize(names)}; };
  if (!dense_names_.empty()) fields_.push_back({"dense", width(dense_names_), DType::F32});
  fields_.push_back({"ids", Shape{columns_of(id_places_)}, DType::I64});
  if (!labels_.empty()) fields_.push_back({"label", Shape{}, DType::F32});
}

std::string ClickTable::describe() const {
  return formatted("{} samples of {} dense numbers and {} fields of ids in {}", size(), dense_names_.size(),
                   id_names_.size(), joined(options_.files, ", "));
}

std::string ClickTable::locate(std::int64_t index) const {
  check_index(index);
  const auto next = std::ranges::upper_bound(files_, index, {}, &File::first);
  return formatted("{}, line {}", std::prev(next)->path, lines_[static_cast<std::size_t>(index)]);
}

void ClickTable::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  const auto sample = static_cast<std::size_t>(index);
  std::size_t field = 0;
  const auto copy = [&](const auto& values, std::size_t width) {
    std::memcpy(out[field++], values.data() + sample * width, width * sizeof values[0]);
  };
  if (!dense_names_.empty()) copy(dense_, dense_names_.size());
  copy(ids_, static_cast<std::size_t>(columns_of(id_places_)));
  if (!labels_.empty()) copy(labels_, 1);
}

}  // namespace lockstep::datasets
