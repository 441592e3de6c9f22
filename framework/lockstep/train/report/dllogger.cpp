#include "lockstep/train/report/dllogger.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace lockstep::train {
namespace {

using nlohmann::ordered_json;

constexpr const char* kDlloggerSite = "dllogger";
constexpr const char* kDlloggerName = "dllogger.json";
constexpr const char* kUpdateMember = "global_step";

std::string text_of(const ordered_json& value) {
  return value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);  // ASCII, as Python's json.dumps()
}

// Returns JSON with blanks after commas and colons, as Python's json.dumps(): tools search for such text.
std::string spaced(const ordered_json& value) {
  if (!value.is_structured()) return text_of(value);
  std::string text;
  for (const auto& item : value.items()) {
    text += text.empty() ? "" : ", ";
    if (value.is_object()) text += text_of(item.key()) + ": ";
    text += spaced(item.value());
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// Returns a name for lines that tell the same of another update.
template <class Json>
std::string kind_of(const Json& step, const Json& data) {
  if (step.empty()) return "run";
  if (data.contains("val.loss")) return "val";
  return step.size() == 1 ? "epoch" : "update";
}

// Returns the number of updates after which a line was written: 0 for parameters and metadata.
std::optional<std::int64_t> update_of(const nlohmann::json& line) {
  const std::string type = line.contains("type") && line["type"].is_string() ? line["type"].get<std::string>() : "";
  if (type == "METADATA") return 0;
  if (type != "LOG" || !line.contains("step") || !line.contains("data") || !line["data"].is_object())
    return std::nullopt;
  if (line["step"] == "PARAMETER") return 0;
  const nlohmann::json& data = line["data"];
  if (!line["step"].is_array() || !data.contains(kUpdateMember) || !data[kUpdateMember].is_number_integer())
    return std::nullopt;
  return data[kUpdateMember].get<std::int64_t>();
}

}  // namespace

DlloggerWriter::DlloggerWriter(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step,
                               bool enabled)
    : enabled_(enabled), lines_(open(std::move(output), resumed_step)) {
  if (enabled_) lines_.open();
}

JsonLines DlloggerWriter::open(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step) {
  const auto note = [this](const nlohmann::json& line) {
    if (line["type"] != "LOG" || !line["step"].is_array()) return true;
    std::int64_t& last = kept_.try_emplace(kind_of(line["step"], line["data"]), -1).first->second;
    last = std::max(last, *update_of(line));
    return true;
  };
  return JsonLines({.folder = std::move(output),
                    .name = kDlloggerName,
                    .site = kDlloggerSite,
                    .prefix = "DLLL ",
                    .resumed_step = resumed_step,
                    .stays = note,
                    .step = update_of});
}

void DlloggerWriter::check_file(const io::Folder& output) {
  JsonLines::check_file(output, kDlloggerName, kDlloggerSite);
}

// Returns the members with which each line begins. Times are texts; the date is the host's local time.
ordered_json DlloggerWriter::stamp() const {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const auto since = duration_cast<microseconds>(now.time_since_epoch()).count();
  const auto part = [](std::int64_t microseconds) { return fmt::format("{:06}", microseconds % 1'000'000); };
  const std::int64_t elapsed = std::max<std::int64_t>(0, duration_cast<microseconds>(now - began_).count());
  const std::tm local = fmt::localtime(system_clock::to_time_t(now));
  return {{"timestamp", fmt::format("{}.{}", since / 1'000'000, part(since))},
          {"datetime", fmt::format("{:%Y-%m-%d %H:%M:%S}.{}", local, part(since))},
          {"elapsedtime", fmt::format("{}.{}", elapsed / 1'000'000, part(elapsed))}};
}

void DlloggerWriter::parameters(const ordered_json& values) {
  ordered_json line = stamp();
  line.update({{"type", "LOG"}, {"step", "PARAMETER"}, {"data", values}});
  lines_.append_text(spaced(line));
}

void DlloggerWriter::metadata(std::string_view metric, const ordered_json& values) {
  ordered_json line = stamp();
  line.update({{"type", "METADATA"}, {"metric", metric}, {"metadata", values}});
  lines_.append_text(spaced(line));
}

void DlloggerWriter::log(const std::vector<std::int64_t>& step, std::int64_t update, ordered_json values) {
  const ordered_json place = step;
  const auto kept = kept_.find(kind_of(place, values));
  if (kept != kept_.end() && update <= kept->second) return;
  values[kUpdateMember] = update;
  ordered_json line = stamp();
  line.update({{"type", "LOG"}, {"step", place}, {"data", std::move(values)}});
  lines_.append_text(spaced(line));
}

}  // namespace lockstep::train
