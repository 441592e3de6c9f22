// Writes OUTPUT/metrics.prom: the newest values of a run in Prometheus' text format (version 0.0.4), for the textfile
// collector of node_exporter. The file is replaced as a whole, at most once a second and at the end of the run, so that
// a reader never sees a part of it. For rank 0, in one thread. A file that cannot be written is a warning, once.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/io/folder.h"
#include "lockstep/train/report/metrics.h"

namespace lockstep::train {

class PrometheusFile {
 public:
  // Removes the file of an earlier run; writes only if `enabled`.
  PrometheusFile(std::shared_ptr<const io::Folder> output, bool enabled);
  PrometheusFile(const PrometheusFile&) = delete;
  PrometheusFile& operator=(const PrometheusFile&) = delete;
  ~PrometheusFile();  // writes what is not written yet

  bool enabled() const { return enabled_; }
  void name_run(std::string run) { run_ = std::move(run); }  // the label `run` of all values
  void write(const MetricsRecord& record);
  void follow(const std::shared_ptr<const io::Folder>& output) { folder_ = output; }

 private:
  using Clock = std::chrono::steady_clock;
  using Values = std::map<std::string, double>;  // by labels without those of the run
  void set(const std::string& name, std::string_view labels, double value) {
    values_[name][std::string(labels)] = value;
  }
  std::string text() const;
  void write_out();

  std::shared_ptr<const io::Folder> folder_;
  bool enabled_, failed_ = false, changed_ = false;
  std::string run_;
  std::map<std::string, Values> values_;
  Clock::time_point next_ = Clock::now();
};

// Returns a value of a label between quotation marks, as the format escapes it.
std::string label_text(std::string_view value);

}  // namespace lockstep::train
