// The fields of any data set as those of a click model: arrays of numbers joined to "dense", arrays of integers joined
// to "ids", and one number as "label".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset_view.h"

namespace lockstep::datasets {

struct ClickColumnsOptions {
  std::size_t dense = 0, ids = 0;  // the first fields of the set, then those behind them
  bool label = true;               // the field behind these
};

// Fields: "dense" F32, unless there are no such arrays; "ids" I64; "label" F32 (). Numbers of any type become F32,
// integers I64. Any thread may read.
class ClickColumns : public data::DatasetView {
 public:
  // Throws Error for ids that are not integers, a label of several elements, and another number of fields.
  ClickColumns(std::shared_ptr<const data::Dataset> whole, ClickColumnsOptions options);

  const std::vector<data::Field>& fields() const override { return fields_; }
  // Throws Error with the place for a label that is not from 0 to 1.
  void read(std::int64_t index, std::span<std::byte* const> out) const override;
  void read_random(std::int64_t index, const data::SampleKey& key, std::span<std::byte* const> out) const override;

  // The name of each element: "a" of an array of one element, else "a[0]", "a[1]".
  const std::vector<std::string>& dense_names() const { return dense_names_; }
  const std::vector<std::string>& id_names() const { return id_names_; }

 private:
  template <class Read>
  void join(std::int64_t index, std::span<std::byte* const> out, const Read& read) const;

  ClickColumnsOptions options_;
  std::vector<data::Field> fields_;
  std::vector<std::string> dense_names_, id_names_;
};

}  // namespace lockstep::datasets
