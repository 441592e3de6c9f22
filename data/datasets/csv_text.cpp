#include "data/datasets/csv_text.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

std::string_view without_return(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// Cuts one record into cells.
class CellReader {
 public:
  CellReader(std::string_view site, const CsvRecord& record, char separator, std::string& unquoted)
      : site_(site), text_(record.text), separator_(separator), line_(record.line), unquoted_(unquoted) {
    unquoted_.clear();
    unquoted_.reserve(text_.size());  // it never grows: views into it stay valid
  }

  void read(std::vector<CsvCell>& cells) {
    cells.clear();
    do {
      cells.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted_cell(cells.size()) : plain_cell(cells.size()));
    } while (at_++ < text_.size());  // a separator, or the end
  }

 private:
  CsvCell plain_cell(std::size_t number) {
    const std::size_t end = std::min(text_.find(separator_, at_), text_.size());
    const CsvCell cell{.text = text_.substr(at_, end - at_), .quoted = false, .line = line_};
    check(cell.text.find('"') == cell.text.npos, site_,
          "line {}, column {}: a quote inside a field without quotes, expected the whole field in quotes", line_,
          number);
    at_ = end;
    return cell;
  }

  CsvCell quoted_cell(std::size_t number) {
    CsvCell cell{.text = {}, .quoted = true, .line = line_};
    const std::size_t first = unquoted_.size();
    bool doubled = false;
    std::size_t begin = ++at_;
    while (true) {
      const std::size_t quote = text_.find('"', at_);
      check(quote != text_.npos, site_, "line {}, column {}: a quote that is not closed", cell.line, number);
      line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                          text_.begin() + static_cast<std::ptrdiff_t>(quote), '\n');
      at_ = quote + 1;
      if (at_ >= text_.size() || text_[at_] != '"') {
        cell.text = text_.substr(begin, quote - begin);
        if (doubled) {
          unquoted_ += cell.text;
          cell.text = std::string_view(unquoted_).substr(first);
        }
        break;
      }
      doubled = true;  // the first of two quotes is text
      unquoted_ += text_.substr(begin, at_ - begin);
      begin = ++at_;
    }
    check(at_ == text_.size() || text_[at_] == separator_, site_,
          "line {}, column {}: text after the closing quote, expected '{}' or the end of the line", line_, number,
          separator_);
    return cell;
  }

  std::string_view site_, text_;
  char separator_;
  std::int64_t line_;
  std::string& unquoted_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t split_records(std::string_view site, std::string_view block, bool last, std::int64_t& line,
                          std::vector<CsvRecord>& records) {
  std::size_t begin = 0;
  bool inside = false;  // quotes
  std::int64_t number = line;
  for (std::size_t at = 0; at < block.size(); ++at) {
    const char c = block[at];
    if (c == '"') inside = !inside;
    if (c != '\n') continue;
    ++number;
    if (inside) continue;
    const std::string_view text = without_return(block.substr(begin, at - begin));
    if (!text.empty()) records.push_back({text, line});
    begin = at + 1;
    line = number;
  }
  if (!last) return begin;
  check(!inside, site, "line {}: a quote in the record that begins here is not closed", line);
  const std::string_view text = without_return(block.substr(begin));
  if (!text.empty()) records.push_back({text, line});
  return block.size();
}

void split_cells(std::string_view site, const CsvRecord& record, char separator, std::vector<CsvCell>& cells,
                 std::string& unquoted) {
  CellReader(site, record, separator, unquoted).read(cells);
}

}  // namespace lockstep::datasets
