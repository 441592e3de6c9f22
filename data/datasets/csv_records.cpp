#include "data/datasets/csv_records.h"

#include <algorithm>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/file_source.h"

namespace lockstep::datasets {
namespace {

constexpr std::size_t kMostRecord = std::size_t{1} << 30;  // bytes of one record; more is a quote that is not closed

// Appends bytes until the text has `wanted` of them; false: the file has ended.
bool fill(data::FileSource& file, std::string& text, std::size_t wanted) {
  std::vector<std::uint8_t> piece(std::min(wanted, std::size_t{1} << 20));
  while (text.size() < wanted) {
    const std::size_t got = file.read_some(std::span(piece).first(std::min(piece.size(), wanted - text.size())));
    text.append(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(got));
    if (got == 0) return false;
  }
  return true;
}

}  // namespace

void read_csv_records(const std::filesystem::path& path, std::size_t block,
                      const std::function<void(std::span<const CsvRecord>)>& take) {
  const std::string site = path.string();
  data::FileSource file(path);
  std::string text;
  std::int64_t line = 1;
  bool last = false;
  for (std::size_t wanted = block; !last;) {
    last = !fill(file, text, wanted);
    if (line == 1 && text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // a byte order mark
    std::vector<CsvRecord> records;
    const std::size_t used = split_records(site, text, last, line, records);
    take(records);
    text.erase(0, used);
    check(text.size() < kMostRecord, site, "line {}: a record of more than {} bytes, expected one that ends", line,
          kMostRecord);
    wanted = std::max(block, 2 * text.size());
  }
}

}  // namespace lockstep::datasets
