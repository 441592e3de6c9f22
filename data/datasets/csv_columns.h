// Which columns of a CSV file a data set reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/csv.h"
#include "data/datasets/csv_text.h"

namespace lockstep::datasets {

struct CsvColumns {
  std::vector<std::string> names{};  // of the header; empty: the file has none
  std::size_t count = 0;             // of all columns
  std::vector<std::size_t> inputs{}, targets{};
  std::optional<std::size_t> label{};

  std::string plain_name(std::size_t column) const;  // of the header, or the number
  std::string name(std::size_t column) const;        // for messages: "1 ('width')"
};

// Finds the columns of the options in a file whose first record is `first`. Throws Error at `site` for a name that is
// not there, or is there twice.
CsvColumns choose_columns(std::string_view site, const CsvRecord& first, const CsvOptions& options);
// Returns the columns to ask for in a further set of a run: `asked`, or `known` where `asked` has "*". `known` are the
// columns of the run's first set, or of the run that made the weights; empty: none are known yet. The files of the
// further set may have their columns in another order, and more of them.
std::vector<std::string> columns_of_run(const std::vector<std::string>& asked, const std::vector<std::string>& known);
// Throws Error at `site` unless `list` are columns of these names: those of the first file.
void expect_columns(std::string_view site, const CsvColumns& columns, const std::vector<std::size_t>& list,
                    const std::vector<std::string>& names);

std::string_view stripped_cell(std::string_view text);  // without spaces and tabs around it
std::string shown_cell(std::string_view text);          // printable and short, for messages

// Whether pandas.read_csv() reads this text as a missing value.
bool is_missing_text(std::string_view text);
// The class that an integer's text stands for; -1: the text is no integer from 0 to 65535, or has leading zeros.
std::int64_t class_number(std::string_view text);

}  // namespace lockstep::datasets
