#include "lockstep/train/report/record_kinds.h"

#include <algorithm>
#include <cstddef>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

bool* kind_named(RecordKinds& kinds, std::string_view name) {
  if (name == "dllogger") return &kinds.dllogger;
  if (name == "tensorboard") return &kinds.tensorboard;
  if (name == "csv") return &kinds.csv;
  return name == "prometheus" ? &kinds.prometheus : nullptr;
}

}  // namespace

RecordKinds record_kinds(std::string_view text) {
  RecordKinds kinds;
  if (text == "none") return kinds;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    bool* kind = kind_named(kinds, name);
    check(kind != nullptr, "options",
          "--logger is '{}', expected none, or some of dllogger, tensorboard, csv, prometheus with commas between",
          text);
    *kind = true;
    begin = end + 1;
  }
  return kinds;
}

}  // namespace lockstep::train
