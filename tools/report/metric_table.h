// The lines of a run's metrics.jsonl as columns of numbers, read on as the run writes. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::tools {

class MetricTable {
 public:
  explicit MetricTable(std::filesystem::path file) : path_(std::move(file)) {}

  // Reads what was appended since the last call, and begins anew if the file was replaced or cut, as a resume does.
  // Returns whether anything changed; false while there is no file. Throws Error if the file cannot be read, and for a
  // name that is no regular file.
  bool update();

  // Returns the columns of each split, "train", "epoch", "eval" and so on, as arrays of equal length; a value that a
  // line does not have, or that is not finite, is null. Of a split with more than `most` lines about `most` remain:
  // neighbours are represented by those of the lowest and of the highest loss.
  nlohmann::ordered_json series(std::size_t most = 2000) const;
  // Returns sums over all "train" lines: their number, times in seconds, bytes, and for each rank how often it was the
  // slowest and its lead in seconds.
  nlohmann::ordered_json totals() const;

  std::int64_t last_step() const { return last_step_; }
  std::int64_t bad_lines() const { return bad_lines_; }

 private:
  struct Split {
    std::size_t rows = 0;
    std::vector<std::string> order;                      // of the columns
    std::map<std::string, std::vector<double>> columns;  // NaN: no value
  };
  struct Slowest {
    std::int64_t times = 0;
    double lead = 0;  // seconds, summed
  };
  void clear();
  void add(std::string_view line);
  static std::vector<std::size_t> chosen_rows(const Split& split, std::size_t most);

  std::filesystem::path path_;
  io::FileDescriptor file_;
  std::int64_t offset_ = 0;  // in the file: end of what was read
  std::string rest_;         // of an incomplete line
  std::map<std::string, Split> splits_;
  std::map<std::string, double> sums_;  // of "train" lines
  std::map<std::int64_t, Slowest> slowest_;
  std::int64_t last_step_ = 0, bad_lines_ = 0;
};

}  // namespace lockstep::tools
