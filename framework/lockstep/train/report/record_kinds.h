// The files of records that --logger names, in addition to metrics.jsonl.
#pragma once

#include <string_view>

namespace lockstep::train {

struct RecordKinds {
  bool dllogger = false, tensorboard = false, csv = false, prometheus = false;
};

// Reads "none", or names with commas between: "tensorboard,csv". Throws Error that names the option.
RecordKinds record_kinds(std::string_view text);

}  // namespace lockstep::train
