#include "data/datasets/csv_columns.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::datasets {
namespace {

std::size_t find_column(std::string_view site, const CsvColumns& columns, const std::string& name) {
  const auto count = std::ranges::count(columns.names, name);
  check(count <= 1, site, "{} columns are called '{}', expected one, or the column's number", count, shown_cell(name));
  if (count == 1) return static_cast<std::size_t>(std::ranges::find(columns.names, name) - columns.names.begin());
  std::size_t number = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (code == std::errc() && end == name.data() + name.size() && number < columns.count) return number;
  std::vector<std::string> names;
  for (std::size_t c = 0; c < std::min<std::size_t>(columns.count, 20); ++c) names.push_back(columns.name(c));
  fail(site, "no column '{}', the file has: {}{}", shown_cell(name), joined(names, ", "),
       columns.count > names.size() ? formatted(" and {} more", columns.count - names.size()) : "");
}

std::vector<bool> named_columns(std::string_view site, const CsvColumns& columns, const CsvOptions& options) {
  std::vector<bool> named(columns.count);
  if (columns.label) named[*columns.label] = true;
  for (const auto* list : {&options.inputs, &options.targets}) {
    for (const std::string& name : *list) {
      if (name != "*") named[find_column(site, columns, name)] = true;
    }
  }
  return named;
}

std::vector<std::size_t> chosen_columns(std::string_view site, const CsvColumns& columns,
                                        const std::vector<std::string>& names, const std::vector<bool>& named) {
  std::vector<std::size_t> list;
  for (const std::string& name : names) {
    if (name != "*") {
      list.push_back(find_column(site, columns, name));
      continue;
    }
    for (std::size_t c = 0; c < columns.count; ++c) {
      if (!named[c]) list.push_back(c);
    }
  }
  return list;
}

}  // namespace

std::string CsvColumns::plain_name(std::size_t column) const {
  return names.empty() ? formatted("{}", column) : names[column];
}

std::string CsvColumns::name(std::size_t column) const {
  return names.empty() ? formatted("{}", column) : formatted("{} ('{}')", column, shown_cell(names[column]));
}

CsvColumns choose_columns(std::string_view site, const CsvRecord& first, const CsvOptions& options) {
  std::vector<CsvCell> cells;
  std::string unquoted;
  split_cells(site, first, options.separator, cells, unquoted);
  CsvColumns columns{.count = cells.size()};
  if (options.header) {
    for (const CsvCell& cell : cells) columns.names.emplace_back(cell.quoted ? cell.text : stripped_cell(cell.text));
  }
  if (!options.label.empty()) columns.label = find_column(site, columns, options.label);
  const std::vector<bool> named = named_columns(site, columns, options);
  columns.inputs = chosen_columns(site, columns, options.inputs, named);
  columns.targets = chosen_columns(site, columns, options.targets, named);
  return columns;
}

std::vector<std::string> columns_of_run(const std::vector<std::string>& asked, const std::vector<std::string>& known) {
  return known.empty() || std::ranges::find(asked, "*") == asked.end() ? asked : known;
}

void expect_columns(std::string_view site, const CsvColumns& columns, const std::vector<std::size_t>& list,
                    const std::vector<std::string>& names) {
  check(list.size() == names.size(), site, "{} columns are asked for, {} in the first file; expected equal numbers",
        list.size(), names.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = columns.plain_name(list[i]);
    check(name == names[i], site, "column {} is '{}', but '{}' in the first file; expected the same columns", list[i],
          shown_cell(name), shown_cell(names[i]));
  }
}

std::string_view stripped_cell(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string shown_cell(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string part = printable(text.substr(0, kLongest));
  if (text.size() > kLongest) part += "...";
  return part;
}

bool is_missing_text(std::string_view text) {
  constexpr std::array<std::string_view, 18> kMissing{"",     "NA",       "N/A",  "NaN",  "nan",     "NAN",
                                                      "null", "NULL",     "None", "n/a",  "<NA>",    "#N/A",
                                                      "#NA",  "#N/A N/A", "-nan", "-NaN", "1.#QNAN", "-1.#IND"};
  return std::ranges::find(kMissing, text) != kMissing.end();
}

std::int64_t class_number(std::string_view text) {
  constexpr std::int64_t kMostClasses = 1 << 16;
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 0 || value >= kMostClasses) return -1;
  return text.size() > 1 && (text[0] == '0' || text[0] == '-') ? -1 : value;
}

}  // namespace lockstep::datasets
