#include "lockstep/train/callbacks/report_evaluation.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/log.h"
#include "lockstep/io/folder.h"
#include "lockstep/train/callbacks/evaluate.h"
#include "lockstep/train/report/metrics.h"
#include "lockstep/train/report/result_line.h"

namespace lockstep::train {
namespace {

constexpr const char* kEvaluationSite = "evaluation";

std::string report_time() {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
}

}  // namespace

nlohmann::ordered_json ReportEvaluation::line(const std::string& time, const std::string& split,
                                              const Totals& totals) const {
  nlohmann::ordered_json data = nlohmann::ordered_json::object();
  for (const auto& [name, value] : settings_.data) data[name] = value;
  nlohmann::ordered_json json = {
      {"time", time},   {"weights", settings_.weights}, {"step", nullptr},    {"data", std::move(data)},
      {"split", split}, {"samples", totals.samples},    {"loss", totals.loss}};
  if (settings_.step >= 0) json["step"] = settings_.step;
  add_results(totals.metrics, json);
  return json;
}

// One write(): lines of several jobs do not mix.
void ReportEvaluation::append(const std::string& lines) const {
  const std::filesystem::path file = std::filesystem::path(settings_.output) / "evaluations.jsonl";
  const io::FileDescriptor out = io::open_own_file(file, io::FileUse::Append, kEvaluationSite);
  const ssize_t written = ::write(out.get(), lines.data(), lines.size());
  const int code = written < 0 ? errno : ENOSPC;
  check(written == static_cast<ssize_t>(lines.size()), kEvaluationSite, "{}: write: {}", file.string(),
        std::generic_category().message(code));
}

void ReportEvaluation::after_evaluation(const EvaluationEvent& event, Orders& /*orders*/) {
  if (!event.scheduled || !event.totals.whole) return;
  log()->info("evaluation of {}: {}", settings_.weights, evaluation_text(event.totals));
  const std::string time = report_time();
  std::vector<nlohmann::ordered_json> lines{line(time, "eval", event.totals)};
  for (const auto& [name, more] : event.more) {
    log()->info("evaluation of {} on {}: {}", settings_.weights, name, evaluation_text(more));
    lines.push_back(line(time, "eval:" + name, more));
  }
  comm::collectively(comm_, [&] {
    if (!comm_.is_root()) return;
    std::string text;
    for (const nlohmann::ordered_json& each : lines) {
      text += result_text(each) + "\n";
      if (settings_.prints) print_result(each);
    }
    append(text);
  });
}

}  // namespace lockstep::train
