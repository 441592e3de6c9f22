// Writes OUTPUT/dllogger.json in the form of NVIDIA's DLLogger, for tools that read its logs. Each line is "DLLL " and
// an object: parameters of the run (step "PARAMETER"), units of metrics (type METADATA), and values (type LOG) with
// step [epoch, iteration] of an update, [epoch] of an epoch, or [] of the whole run; epochs count from 0 there,
// iterations of an epoch from 1. The form is that of JSONStreamBackend in https://github.com/NVIDIA/dllogger
// (dllogger/logger.py, commit 07ec82a), the meaning of steps that of its README. For rank 0, in one thread. Throws
// Error if the file cannot be read or written.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/report/json_lines.h"

namespace lockstep::train {

class DlloggerWriter {
 public:
  // Moves the file of an earlier run aside, or, with `resumed_step`, removes lines of later updates (see JsonLines).
  // Writes only if `enabled`.
  DlloggerWriter(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step, bool enabled);

  // Throws Error if the file of an earlier run cannot be continued. Changes nothing.
  static void check_file(const io::Folder& output);

  bool enabled() const { return enabled_; }
  void parameters(const nlohmann::ordered_json& values);
  void metadata(std::string_view metric, const nlohmann::ordered_json& values);
  // Writes values after `update` updates, which are added to them as "global_step"; not if the file has them from
  // before the resumed step.
  void log(const std::vector<std::int64_t>& step, std::int64_t update, nlohmann::ordered_json values);

  // See JsonLines::follow().
  void follow(const std::shared_ptr<const io::Folder>& output) { lines_.follow(output); }

 private:
  JsonLines open(std::shared_ptr<const io::Folder> output, std::optional<std::int64_t> resumed_step);
  nlohmann::ordered_json stamp() const;

  bool enabled_;
  std::chrono::system_clock::time_point began_ = std::chrono::system_clock::now();
  std::map<std::string, std::int64_t> kept_;  // last update in the file, by kind of line
  JsonLines lines_;
};

}  // namespace lockstep::train
