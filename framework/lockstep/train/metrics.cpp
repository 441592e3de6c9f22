#include "lockstep/train/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlace = "metrics";

void move_aside(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error) || fs::file_size(path, error) == 0) return;
  fs::path aside;
  for (int n = 1; aside.empty() || fs::exists(aside, error); ++n) {
    aside = path.parent_path() / fmt::format("metrics.{}.jsonl", n);
  }
  fs::rename(path, aside, error);
  check(!error, kPlace, "cannot move {} to {}: {}", path.string(), aside.string(), error.message());
}

void write_whole(const fs::path& path, const std::string& text) {
  const fs::path temporary = path.string() + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "we");
  check(file != nullptr, kPlace, "cannot write {}: {}", temporary.string(), std::strerror(errno));
  bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  good = std::fflush(file) == 0 && good;
  good = fsync(fileno(file)) == 0 && good;
  const int reason = errno;
  std::fclose(file);
  check(good, kPlace, "cannot write {}: {}", temporary.string(), std::strerror(reason));
  std::error_code error;
  fs::rename(temporary, path, error);
  check(!error, kPlace, "cannot replace {}: {}", path.string(), error.message());
}

}  // namespace

MetricsWriter::MetricsWriter(const fs::path& output, std::optional<std::int64_t> resumed_step)
    : path_(output / "metrics.jsonl") {
  std::error_code error;
  fs::create_directories(output, error);
  check(!error, kPlace, "cannot create {}: {}; expected a writable --output", output.string(), error.message());
  if (resumed_step) {
    keep_until(*resumed_step);
  } else {
    move_aside(path_);
  }
  file_.reset(std::fopen(path_.c_str(), "ae"));
  check(file_ != nullptr, kPlace, "cannot write {}: {}; expected a writable --output", path_.string(),
        std::strerror(errno));
}

void MetricsWriter::keep_until(std::int64_t step) {
  std::error_code error;
  if (!fs::exists(path_, error)) return;
  std::ifstream in(path_, std::ios::binary);
  check(in.is_open(), kPlace, "cannot read {}: {}", path_.string(), std::strerror(errno));
  std::string kept, line;
  bool changed = false;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    const bool whole = !in.eof();  // ends in a newline
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const bool ours = whole && json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
                      json.contains("split") && json["split"].is_string();
    if (!ours) {
      log()->warn("[metrics] {} line {} is no whole record (the run was cut off there) and is left out", path_.string(),
                  number);
    }
    if (!ours || json["step"] > step) {
      changed = true;
      continue;
    }
    std::int64_t& last = kept_.try_emplace(json["split"].get<std::string>(), -1).first->second;
    last = std::max(last, json["step"].get<std::int64_t>());
    kept += line + "\n";
  }
  check(!in.bad(), kPlace, "cannot read {}", path_.string());
  if (changed) write_whole(path_, kept);
}

void MetricsWriter::write(const MetricsRecord& record) {
  if (const auto kept = kept_.find(record.split); kept != kept_.end() && record.step <= kept->second) return;
  nlohmann::ordered_json json = {{"step", record.step},
                                 {"epoch", record.epoch},
                                 {"split", record.split},
                                 {"loss", record.loss},
                                 {"accuracy", record.accuracy},
                                 {"lr", record.lr},
                                 {"samples_per_second", record.samples_per_second},
                                 {"seconds", record.seconds}};
  for (const auto& field : record.extra.items()) json[field.key()] = field.value();
  const std::string line = json.dump() + "\n";
  check(std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() && std::fflush(file_.get()) == 0, kPlace,
        "cannot write {}: {}", path_.string(), std::strerror(errno));
}

}  // namespace lockstep::train
