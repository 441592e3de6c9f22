// The text of CSV files, after RFC 4180: records end with a line feed, with or without a carriage return before it; a
// field in double quotes may have separators, line ends and doubled quotes in it. Empty lines are skipped. Pure
// functions: any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::datasets {

struct CsvRecord {
  std::string_view text{};  // without the line's end
  std::int64_t line = 1;    // on which it begins, from 1
};

// Finds the records at the beginning of `block`, whose first line has number `line`, and appends them to `records`.
// Returns the number of bytes that they take; the rest is the start of a record that ends in a later block. With `last`
// there is none: the rest is a record. `line` becomes the number of the line after them. Throws Error at `site` for a
// quote that is not closed in the last block.
std::size_t split_records(std::string_view site, std::string_view block, bool last, std::int64_t& line,
                          std::vector<CsvRecord>& records);

struct CsvCell {
  std::string_view text{};  // without quotes
  bool quoted = false;
  std::int64_t line = 1;
};

// Divides a record into its cells. `unquoted` holds the text of cells with doubled quotes; views stay valid until the
// next call with it, and as long as the record's text. Throws Error at `site`, with line and number of the cell, for a
// quote inside a cell without quotes and for text after a closing quote.
void split_cells(std::string_view site, const CsvRecord& record, char separator, std::vector<CsvCell>& cells,
                 std::string& unquoted);

}  // namespace lockstep::datasets
