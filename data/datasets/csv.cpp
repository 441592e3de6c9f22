#include "data/datasets/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "data/datasets/csv_columns.h"
#include "data/datasets/csv_records.h"
#include "lockstep/core/error.h"
#include "lockstep/core/on_threads.h"
#include "lockstep/core/partition.h"
#include "lockstep/data/file_pattern.h"

namespace lockstep::datasets {
// Reads one file after the other into a data set.
class CsvDataset::Reader {
 public:
  explicit Reader(CsvDataset& set)
      : set_(set), options_(set.options_), known_(set.options_.classes.begin(), set.options_.classes.end()) {}

  void read(const std::filesystem::path& path) {
    site_ = path.string();
    bool header_seen = false;
    read_csv_records(path, options_.block, [&](std::span<const CsvRecord> rows) {
      if (!header_seen && !rows.empty()) {
        find_columns(rows.front());
        header_seen = true;
        if (options_.header) rows = rows.subspan(1);
      }
      add(rows);
    });
    check(header_seen, site_, "the file has no records, expected at least {}",
          options_.header ? "the names of the columns" : "one");
  }

  std::vector<std::string> take_class_texts() { return std::move(texts_); }

 private:
  // The records that one thread has parsed.
  struct Parsed {
    std::vector<double> inputs, targets;
    std::vector<std::string> labels;
    std::int64_t records = 0;
    CsvGaps gaps;
  };

  void find_columns(const CsvRecord& first) {
    columns_ = choose_columns(site_, first, options_);
    if (set_.fields_.empty()) {
      for (const std::size_t c : columns_.inputs) set_.input_names_.push_back(columns_.plain_name(c));
      for (const std::size_t c : columns_.targets) set_.target_names_.push_back(columns_.plain_name(c));
      add_fields();
    }
    expect_columns(site_, columns_, columns_.inputs, set_.input_names_);
    expect_columns(site_, columns_, columns_.targets, set_.target_names_);
  }

  void add_fields() {
    const auto width = [](const std::vector<std::size_t>& list) { return static_cast<std::int64_t>(list.size()); };
    if (!columns_.inputs.empty()) set_.fields_.push_back({"input", {width(columns_.inputs)}, options_.dtype});
    if (!columns_.targets.empty()) set_.fields_.push_back({"target", {width(columns_.targets)}, options_.dtype});
    if (columns_.label) set_.fields_.push_back({"label", Shape{}, DType::I32});
  }

  // Parses records, each thread a part, and appends what they have in their order.
  void add(std::span<const CsvRecord> rows) {
    const auto count = static_cast<std::int64_t>(rows.size());
    const auto parts = static_cast<std::size_t>(std::clamp<std::int64_t>(count / 64, 1, options_.threads));
    std::vector<Parsed> parsed(parts);
    const PartErrors errors = run_on_threads(parts, [&](std::size_t part) {
      const Range mine = part_of(count, static_cast<std::int64_t>(parts), static_cast<std::int64_t>(part));
      parse(rows.subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size())), parsed[part]);
    });
    for (std::size_t p = 0; p < parts; ++p) {
      errors.rethrow(p);  // that of the lowest line
      const Parsed& part = parsed[p];
      append(part.inputs, set_.inputs_);
      append(part.targets, set_.targets_);
      for (const std::string& text : part.labels) set_.labels_.push_back(class_of(text));
      set_.size_ += part.records;
      set_.gaps_.left_out += part.gaps.left_out;
      set_.gaps_.replaced += part.gaps.replaced;
      if (set_.gaps_.first.empty()) set_.gaps_.first = part.gaps.first;
    }
  }

  void append(const std::vector<double>& values, std::vector<std::byte>& out) const {
    const auto put = [&](auto value) {
      const auto* first = reinterpret_cast<const std::byte*>(&value);
      out.insert(out.end(), first, first + sizeof value);
    };
    for (const double value : values) {
      if (options_.dtype == DType::F32)
        put(static_cast<float>(value));
      else
        put(value);
    }
  }

  // Numbers texts in the order in which they appear first.
  std::int32_t class_of(const std::string& text) {
    const auto [entry, is_new] = numbers_.try_emplace(text, static_cast<std::int32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return entry->second;
  }

  void parse(std::span<const CsvRecord> rows, Parsed& parsed) const {
    std::vector<CsvCell> cells;
    std::string unquoted;
    for (const CsvRecord& row : rows) {
      split_cells(site_, row, options_.separator, cells, unquoted);
      check(cells.size() == columns_.count, site_, "line {}: {} columns, expected {}", row.line, cells.size(),
            columns_.count);
      if (options_.skip_missing && is_left_out(cells, parsed.gaps)) continue;
      for (const std::size_t c : columns_.inputs) parsed.inputs.push_back(number(cells[c], c, parsed.gaps));
      for (const std::size_t c : columns_.targets) parsed.targets.push_back(number(cells[c], c, parsed.gaps));
      if (columns_.label) parsed.labels.push_back(label(cells[*columns_.label]));
      ++parsed.records;
    }
  }

  static bool is_missing_number(const CsvCell& cell) { return is_missing_text(stripped_cell(cell.text)); }
  // Quotes make a text of NA, the code of Namibia, and None is the name of a class as often as not.
  bool is_missing_class(const CsvCell& cell) const {
    const std::string_view text = cell.quoted ? cell.text : stripped_cell(cell.text);
    return text.empty() || (!cell.quoted && is_missing_text(text) && text != "None" && !known_.contains(text));
  }

  void note(const CsvCell& cell, std::size_t column, CsvGaps& gaps) const {
    if (gaps.first.empty()) gaps.first = formatted("{}, line {}, column {}", site_, cell.line, columns_.name(column));
  }

  // Whether a record has no place in the set; counts it then.
  bool is_left_out(const std::vector<CsvCell>& cells, CsvGaps& gaps) const {
    const auto leave_out = [&](std::size_t column) {
      note(cells[column], column, gaps);
      ++gaps.left_out;
      return true;
    };
    if (!options_.missing) {
      for (const std::size_t c : columns_.inputs) {
        if (is_missing_number(cells[c])) return leave_out(c);
      }
    }
    for (const std::size_t c : columns_.targets) {
      if (is_missing_number(cells[c])) return leave_out(c);
    }
    return columns_.label && is_missing_class(cells[*columns_.label]) && leave_out(*columns_.label);
  }

  // fail() and not check(): the parts of a message cost more than the number.
  double number(const CsvCell& cell, std::size_t column, CsvGaps& gaps) const {
    const std::string_view text = stripped_cell(cell.text);
    if (is_missing_text(text)) {
      if (!options_.missing)
        fail(site_, "line {}, column {}: the value is missing ('{}'), expected a number{}", cell.line,
             columns_.name(column), text, options_.advice);
      note(cell, column, gaps);
      ++gaps.replaced;
      return *options_.missing;
    }
    std::string_view digits = text;
    if (digits.starts_with('+') && !digits.substr(1).starts_with('-')) digits.remove_prefix(1);  // not of from_chars()
    double value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code == std::errc::invalid_argument || end != digits.data() + digits.size())
      fail(site_, "line {}, column {}: '{}', expected a number", cell.line, columns_.name(column), shown_cell(text));
    const bool tiny = code == std::errc::result_out_of_range && digits.find_first_of("eE") != digits.npos &&
                      digits[digits.find_first_of("eE") + 1] == '-';
    if (tiny) return 0;
    const bool fits = code == std::errc() && std::isfinite(value) &&
                      (options_.dtype == DType::F64 || std::abs(value) < 0x1.ffffffp127);
    if (!fits)
      fail(site_, "line {}, column {}: '{}', expected a finite number that {} holds", cell.line, columns_.name(column),
           shown_cell(text), name_of(options_.dtype));
    return value;
  }

  std::string label(const CsvCell& cell) const {
    const std::string_view text = cell.quoted ? cell.text : stripped_cell(cell.text);
    if (is_missing_class(cell))
      fail(site_, "line {}, column {}: the class is missing ('{}'), expected a text, in quotes if this is one{}",
           cell.line, columns_.name(*columns_.label), text, options_.advice);
    if (!known_.empty() && !known_.contains(text))
      fail(site_, "line {}, column {}: class '{}', expected one of: {}", cell.line, columns_.name(*columns_.label),
           shown_cell(text),
           joined(std::span(options_.classes).first(std::min<std::size_t>(options_.classes.size(), 20)), ", "));
    return std::string(text);
  }

  CsvDataset& set_;
  const CsvOptions& options_;
  std::unordered_set<std::string_view> known_;  // the given classes
  std::string site_;
  CsvColumns columns_;
  std::unordered_map<std::string, std::int32_t> numbers_;
  std::vector<std::string> texts_;  // of the classes, in the order of their first samples
};

CsvDataset::CsvDataset(CsvOptions options) : options_(std::move(options)) {
  check(!options_.inputs.empty(), "csv", "there are no inputs, expected the name or number of at least one column");
  check(options_.dtype == DType::F32 || options_.dtype == DType::F64, "csv", "numbers as {}, expected f32 or f64",
        name_of(options_.dtype));
  check(options_.threads >= 1 && options_.block > 0, "csv", "{} threads and blocks of {} bytes, expected at least 1",
        options_.threads, options_.block);
  check(options_.separator != '"' && options_.separator != '\n' && options_.separator != '\r', "csv",
        "the separator is a quote or a line end, expected another character");
  Reader reader(*this);
  for (const std::filesystem::path& path : data::expand_files(options_.files, options_.dir)) reader.read(path);
  check(
      size_ > 0, "csv", "{}: no records{}, expected at least one after the header", joined(options_.files, ", "),
      gaps_.left_out > 0 ? formatted(" but {} with missing cells, the first is {}", gaps_.left_out, gaps_.first) : "");
  data::check_fields("csv", fields_);
  if (!options_.label.empty()) number_classes(reader.take_class_texts());
}

// Replaces each label, the position of its text in `texts`, by its class.
void CsvDataset::number_classes(const std::vector<std::string>& texts) {
  if (options_.classes.empty()) {
    std::int64_t last = -1;
    const bool all_numbers = std::ranges::all_of(texts, [&](const std::string& text) {
      last = std::max(last, class_number(text));
      return class_number(text) >= 0;
    });
    if (all_numbers) {
      for (std::int64_t number = 0; number <= last; ++number) options_.classes.push_back(formatted("{}", number));
    } else {
      options_.classes = texts;
      std::ranges::sort(options_.classes);
    }
  }
  std::unordered_map<std::string_view, std::int32_t> numbers;
  for (std::size_t c = 0; c < options_.classes.size(); ++c) {
    const bool is_new = numbers.emplace(options_.classes[c], static_cast<std::int32_t>(c)).second;
    check(is_new, "csv", "class '{}' is given twice", shown_cell(options_.classes[c]));
  }
  for (std::int32_t& label : labels_) label = numbers.at(texts[static_cast<std::size_t>(label)]);
}

std::string CsvDataset::describe() const {
  std::string text = formatted("CSV: {} records of {}, {} columns of inputs", size_, joined(options_.files, ", "),
                               input_names_.size());
  if (!target_names_.empty()) text += formatted(", {} of targets", target_names_.size());
  if (classes() > 0) text += formatted(", {} classes", classes());
  return text;
}

void CsvDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  const auto at = static_cast<std::size_t>(index);
  std::size_t field = 0;
  for (const auto* values : {&inputs_, &targets_}) {
    if (values->empty()) continue;
    const std::size_t bytes = fields_[field].bytes();
    std::memcpy(out[field++], values->data() + at * bytes, bytes);
  }
  if (!labels_.empty()) std::memcpy(out[field], &labels_[at], sizeof labels_[at]);
}

}  // namespace lockstep::datasets
