// The record that a checkpoint has of the samples of a click model (data::RunData::record): the fields of ids and the
// rows of each, the dense numbers and their normalisation. Other files then become inputs of the same model. A value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/id_rows.h"
#include "lockstep/data/normalisation.h"

namespace lockstep::datasets {

struct ClickRecord {
  IdRows ids{};                      // without sizes until they are known
  std::vector<std::string> dense{};  // names of the dense numbers
  data::Normalisation normalisation{};
  // A JSON object: the program's own options, and their values, by which the samples are what they are. A training goes
  // on with the same ones only (train/run/continuation.h); other files may have others.
  std::string options = "{}";

  // JSON. parse() throws Error at site "data" for a text that is no such record.
  std::string text() const;
  static ClickRecord parse(std::string_view text);
};

}  // namespace lockstep::datasets
