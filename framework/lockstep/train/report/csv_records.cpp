#include "lockstep/train/report/csv_records.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

constexpr const char* kCsvSite = "csv";
constexpr const char* kCsvName = "metrics.csv";
constexpr std::string_view kCsvColumns = "step,epoch,split,loss,lr,samples_per_second,seconds";
constexpr std::string_view kCsvHeaderBegin = "step,";  // with which no row begins
// Fields of MetricsRecord::extra, in the order of their columns.
constexpr std::array<const char*, 14> kCsvExtra{"compute_seconds", "waiting_seconds",
                                                "network_seconds", "network_hidden_seconds",
                                                "network_bytes",   "network_gb_per_second",
                                                "node_bytes",      "node_gb_per_second",
                                                "slowest_rank",    "slowest_lead_seconds",
                                                "noise_scale",     "skipped",
                                                "samples",         "after_step"};

// A field of a table; one with a comma, a quotation mark or a line's end stands between quotation marks.
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string csv_value(const nlohmann::ordered_json& value) {
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.is_null() ? "nan" : csv_field(value.dump());
}

// Metrics with several results are no columns.
bool is_column(const MetricRule& metric) { return metric.results == 1; }

std::string csv_header(std::span<const MetricRule> metrics) {
  std::string header(kCsvColumns);
  for (const MetricRule& metric : metrics) {
    if (is_column(metric)) header.append(1, ',').append(csv_field(metric.name));
  }
  for (const char* name : kCsvExtra) header.append(1, ',').append(name);
  return header;
}

// Throws Error unless the header of a file, if it has one, is that of this run.
void check_csv_header(const std::filesystem::path& file, const std::string& found, const std::string& expected) {
  check(found.empty() || found == expected, kCsvSite,
        "{} has the columns '{}', expected those of this run, '{}'; move the file away, or omit --logger csv",
        file.string(), found, expected);
}

// Returns the header of the file; empty: its first line is none, or is not complete.
std::string read_csv_header(const io::Folder& output) {
  const io::FileDescriptor file = output.open_file(kCsvName, io::FileUse::Read, kCsvSite);
  std::array<char, 4096> block;
  std::string text;
  while (text.find('\n') == std::string::npos) {
    const ssize_t n = ::read(file.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    check(n >= 0, kCsvSite, "cannot read {}: {}", (output.path() / kCsvName).string(), std::strerror(errno));
    if (n == 0) return "";
    text.append(block.data(), static_cast<std::size_t>(n));
  }
  return text.starts_with(kCsvHeaderBegin) ? text.substr(0, text.find('\n')) : "";
}

// Returns a line of the table as an object for JsonLines; the header is that of step 0.
nlohmann::json parse_csv_row(std::string_view line) {
  if (line.starts_with(kCsvHeaderBegin)) return {{"step", 0}, {"header", std::string(line)}};
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), step);
  const bool whole = error == std::errc() && end != line.data() + line.size() && *end == ',';
  return whole ? nlohmann::json{{"step", step}} : nlohmann::json();
}

}  // namespace

CsvRecords::CsvRecords(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step, bool enabled)
    : enabled_(enabled), lines_(open(std::move(output), resumed_step)) {}

JsonLines CsvRecords::open(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step) {
  const auto note = [this](const nlohmann::json& line) {
    const auto header = line.find("header");
    if (header == line.end()) return !header_.empty();  // a row without a header before it has no meaning
    if (!header_.empty()) return false;
    header_ = header->get<std::string>();
    return true;
  };
  return JsonLines({.folder = std::move(output),
                    .name = kCsvName,
                    .site = kCsvSite,
                    .resumed_step = resumed_step,
                    .stays = note,
                    .parse = parse_csv_row});
}

void CsvRecords::check_file(const io::Folder& output) { JsonLines::check_file(output, kCsvName, kCsvSite); }

void CsvRecords::check_columns(const io::Folder& output, std::span<const MetricRule> metrics) {
  if (!output.has(kCsvName)) return;
  check_csv_header(output.path() / kCsvName, read_csv_header(output), csv_header(metrics));
}

void CsvRecords::begin(std::span<const MetricRule> metrics) {
  if (!enabled_) return;
  metrics_.clear();
  for (const MetricRule& metric : metrics) {
    if (is_column(metric)) metrics_.push_back(metric.name);
  }
  const std::string header = csv_header(metrics);
  check_csv_header(lines_.path(), header_, header);
  lines_.open();
  if (header_.empty()) lines_.append_text(header);
  header_ = header;
}

void CsvRecords::write(const MetricsRecord& record) {
  if (!enabled_) return;
  std::string row = fmt::format("{},{},{},{},{},{},{}", record.step, record.epoch, csv_field(record.split), record.loss,
                                record.lr, record.samples_per_second, record.seconds);
  for (const std::string& name : metrics_) {
    const auto result = find_result(record.metrics, name);
    row.append(1, ',').append(result ? fmt::format("{}", *result) : "");
  }
  for (const char* name : kCsvExtra) {
    const auto value = record.extra.find(name);
    row.append(1, ',').append(value == record.extra.end() ? "" : csv_value(*value));
  }
  lines_.append_text(row);
}

void CsvRecords::follow(const std::shared_ptr<const io::Folder>& output) {
  if (lines_.follow(output)) lines_.prepend_text(header_);
}

}  // namespace lockstep::train
