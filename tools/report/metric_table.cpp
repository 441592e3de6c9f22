#include "tools/report/metric_table.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/io/folder.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::tools {
namespace {

constexpr const char* kTableSite = "report";
// More than any run has: a foreign file ends with a message, and does not fill the memory.
constexpr std::size_t kMostSplits = 64, kMostColumns = 512;
constexpr std::size_t kLongestLine = 16 << 20;
constexpr std::array kSummed{"compute_seconds", "waiting_seconds", "network_seconds",     "network_hidden_seconds",
                             "network_bytes",   "node_bytes",      "slowest_lead_seconds"};

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Whether the open file is no longer the one that the path leads to, or was cut.
bool was_replaced(int file, const std::filesystem::path& path, std::int64_t offset) {
  struct stat mine {
  }, named{};
  check_call(::fstat(file, &mine) == 0, kTableSite, "cannot read {}", path.string());
  if (mine.st_size < offset) return true;
  return ::stat(path.c_str(), &named) == 0 && (named.st_ino != mine.st_ino || named.st_dev != mine.st_dev);
}

}  // namespace

void MetricTable::clear() {
  offset_ = last_step_ = bad_lines_ = 0;
  rest_.clear();
  splits_.clear();
  sums_.clear();
  slowest_.clear();
}

bool MetricTable::update() {
  bool changed = false;
  if (file_.open() && was_replaced(file_.get(), path_, offset_)) {
    file_ = io::FileDescriptor();
    clear();
    changed = true;
  }
  if (!file_.open()) {
    if (!std::filesystem::exists(path_)) return changed;
    file_ = io::open_own_file(path_, io::FileUse::Read, kTableSite);
  }
  std::vector<char> block(1 << 20);
  while (true) {
    const ssize_t n = ::pread(file_.get(), block.data(), block.size(), offset_);
    if (n < 0 && errno == EINTR) continue;
    check_call(n >= 0, kTableSite, "cannot read {}", path_.string());
    if (n == 0) return changed;
    changed = true;
    offset_ += n;
    rest_.append(block.data(), static_cast<std::size_t>(n));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
      add(std::string_view(rest_).substr(begin, end - begin));
    rest_.erase(0, begin);
    check(rest_.size() < kLongestLine, kTableSite,
          "{} has a line of more than {} bytes, expected metrics.jsonl of a run", path_.string(), kLongestLine);
  }
}

void MetricTable::add(std::string_view line) {
  const auto json = train::parse_json(line);
  const bool record = json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
                      json.contains("split") && json["split"].is_string();
  if (!record) {
    ++bad_lines_;
    return;
  }
  const std::string name = json["split"].get<std::string>();
  Split& split = splits_[name];
  check(splits_.size() <= kMostSplits, kTableSite,
        "{} has more than {} kinds of lines, expected metrics.jsonl of a run", path_.string(), kMostSplits);
  last_step_ = std::max(last_step_, json["step"].get<std::int64_t>());
  for (const auto& [key, value] : json.items()) {
    if (!value.is_number() && !value.is_null()) continue;  // texts, and metrics of several results
    auto [column, is_new] = split.columns.try_emplace(key);
    if (is_new) {
      split.order.push_back(key);
      check(split.order.size() <= kMostColumns, kTableSite,
            "{} has lines with more than {} numbers, expected metrics.jsonl of a run", path_.string(), kMostColumns);
    }
    column->second.resize(split.rows, kNone);
    column->second.push_back(train::number(value));
  }
  ++split.rows;
  if (name != "train") return;
  sums_["updates"] += 1;
  for (const char* key : kSummed) {
    const auto value = json.find(key);
    if (value != json.end() && value->is_number()) sums_[key] += value->get<double>();
  }
  const auto rank = json.find("slowest_rank"), lead = json.find("slowest_lead_seconds");
  if (rank == json.end() || !rank->is_number_integer() || lead == json.end() || !lead->is_number()) return;
  Slowest& slowest = slowest_[rank->get<std::int64_t>()];
  ++slowest.times;
  slowest.lead += lead->get<double>();
}

std::vector<std::size_t> MetricTable::chosen_rows(const Split& split, std::size_t most) {
  std::vector<std::size_t> rows;
  const auto losses = split.columns.find("loss");
  if (split.rows <= most || losses == split.columns.end()) {
    for (std::size_t i = 0; i < split.rows; ++i) rows.push_back(i);
    return rows;
  }
  const auto loss = [&](std::size_t row) {
    const double value = row < losses->second.size() ? losses->second[row] : kNone;
    return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
  };
  const std::size_t parts = std::max<std::size_t>(1, most / 2);
  for (std::size_t p = 0; p < parts; ++p) {
    const std::size_t begin = split.rows * p / parts, end = split.rows * (p + 1) / parts;
    std::size_t low = begin, high = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (loss(i) < loss(low)) low = i;
      if (loss(i) > loss(high)) high = i;
    }
    rows.push_back(std::min(low, high));
    if (low != high) rows.push_back(std::max(low, high));
  }
  if (rows.front() != 0) rows.insert(rows.begin(), 0);
  if (rows.back() != split.rows - 1) rows.push_back(split.rows - 1);
  return rows;
}

nlohmann::ordered_json MetricTable::series(std::size_t most) const {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const auto& [name, split] : splits_) {
    const std::vector<std::size_t> rows = chosen_rows(split, most);
    nlohmann::ordered_json columns = nlohmann::ordered_json::object();
    for (const std::string& key : split.order) {
      const std::vector<double>& values = split.columns.at(key);
      nlohmann::ordered_json column = nlohmann::ordered_json::array();
      for (const std::size_t row : rows) {
        const double value = row < values.size() ? values[row] : kNone;
        if (std::isfinite(value))
          column.push_back(value);
        else
          column.push_back(nullptr);
      }
      columns[key] = std::move(column);
    }
    all[name] = nlohmann::ordered_json{{"lines", split.rows}, {"columns", std::move(columns)}};
  }
  return all;
}

nlohmann::ordered_json MetricTable::totals() const {
  nlohmann::ordered_json totals = nlohmann::ordered_json::object();
  for (const auto& [key, sum] : sums_) totals[key] = sum;
  nlohmann::ordered_json slowest = nlohmann::ordered_json::array();
  for (const auto& [rank, entry] : slowest_)
    slowest.push_back(nlohmann::ordered_json{{"rank", rank}, {"times", entry.times}, {"lead_seconds", entry.lead}});
  totals["slowest"] = std::move(slowest);
  return totals;
}

}  // namespace lockstep::tools
