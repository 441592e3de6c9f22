// The part that tests of options share: a command line parsed, and the answer of validate().
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/train/options/command_line.h"
#include "lockstep/train/options/options_json.h"
#include "tests/messages.h"

namespace lockstep::train {

struct Outcome {
  Options options;
  ParseResult result;
  std::string out, err;
  std::int64_t depth = 20;  // an option of the program's own
};

inline Outcome parse_line(std::vector<const char*> arguments, Options defaults = {}, bool is_rank_zero = true) {
  Outcome o;
  o.options = std::move(defaults);
  CommandLine line(o.options, "train_test", "trains", "lockstep 1.2.3");
  line.add({.name = "depth", .value = option_value(o.depth), .argument = "N", .text = "layers"});
  arguments.insert(arguments.begin(), "train_test");
  std::ostringstream out, err;
  o.result = line.parse(static_cast<int>(arguments.size()), arguments.data(), is_rank_zero, out, err);
  o.out = out.str();
  o.err = err.str();
  return o;
}

// Writes a file for --config, and returns its path.
inline std::string write_config(const std::string& text) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string path = testing::TempDir() + "lockstep_" + test->name() + ".toml";
  std::ofstream(path) << text;
  return path;
}

inline std::string validation_error(const Options& options, int world_size = 2) {
  try {
    validate(options, world_size);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace lockstep::train
