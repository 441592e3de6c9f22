// Clicks in packed records (lockstep/data/records/record_format.h): a field for each dense number and each field of
// ids, by its name, and "label" F32 (). Dense numbers are F32 (), ids I64 () or, of a bag, I64 (places).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/datasets/click_entries.h"
#include "data/datasets/click_record.h"
#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// Returns the samples of a set of clicks, with the fields "dense", "ids" and "label", as such fields. Throws Error for
// names that are there twice. Any thread may read the result.
std::unique_ptr<data::Dataset> named_clicks(std::shared_ptr<const data::Dataset> clicks, const ClickRecord& names);

// The options with which records are opened as arrays: files, and the names of their fields.
struct ClickRecordNames {
  data::DatasetOptions options{};
  ClickSetOptions set{};
};
// Completes options that are not given: the files are train.index and eval.index of --data-dir; all fields of floating
// numbers are dense numbers, and all of integers are ids. Throws Error for files that are not there.
ClickRecordNames name_click_records(const data::DatasetOptions& options, const ClickSetOptions& set);

// Returns the samples of these sets of records with the named fields, in this order.
std::shared_ptr<data::Dataset> open_click_records(const data::DatasetOptions& options,
                                                  const std::vector<std::string>& files,
                                                  const std::vector<std::string>& fields);

}  // namespace lockstep::datasets
