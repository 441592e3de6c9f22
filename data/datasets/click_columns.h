// The fields of any data set as those of a click model: arrays of numbers joined to "dense", arrays of integers joined
// to "ids", and one number as "label".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/datasets/click_bags.h"
#include "lockstep/data/dataset_view.h"

namespace lockstep::datasets {

struct ClickColumnsOptions {
  std::size_t dense = 0, ids = 0;  // the first fields of the set, then those behind them
  std::vector<ClickBag> bags{};    // arrays of ids that are bags, by name; then come those of counts, in this order
  bool label = true;               // the field behind these
};

// Fields: "dense" F32, unless there are no such arrays; "ids" I64; "label" F32 (). Numbers of any type become F32,
// integers I64. A bag has as many places as its array has elements; those without an id have kMissingId, or, with an
// array of counts, lie behind the first `count`. Any thread may read.
class ClickColumns : public data::DatasetView {
 public:
  // Throws Error for ids and counts that are not integers, a label or counts of several elements, and another number of
  // fields.
  ClickColumns(std::shared_ptr<const data::Dataset> whole, ClickColumnsOptions options);

  const std::vector<data::Field>& fields() const override { return fields_; }
  // Throws Error with the place for a label that is not from 0 to 1, a number that is not finite, an id below -1, and
  // a count that is none.
  void read(std::int64_t index, std::span<std::byte* const> out) const override;
  void read_random(std::int64_t index, const data::SampleKey& key, std::span<std::byte* const> out) const override;

  // The name of each element: "a" of a bag and of an array of one element, else "a[0]", "a[1]".
  const std::vector<std::string>& dense_names() const { return dense_names_; }
  const std::vector<std::string>& id_names() const { return id_names_; }
  const std::vector<std::int64_t>& id_places() const { return id_places_; }  // of each field of ids: 0, or a bag's

 private:
  // A bag whose array of counts is field `counts` of the set; its places begin at `column` of "ids".
  struct Counted {
    std::size_t ids, counts;
    std::int64_t column;
  };
  void add_ids(const data::Field& field, std::size_t number);
  void check_ids(std::int64_t index, std::span<const std::byte* const> in, std::span<std::int64_t> ids) const;
  template <class Read>
  void join(std::int64_t index, std::span<std::byte* const> out, const Read& read) const;

  ClickColumnsOptions options_;
  std::vector<data::Field> fields_;
  std::vector<std::string> dense_names_, id_names_;
  std::vector<std::int64_t> id_places_;
  std::vector<Counted> counted_;
};

// Returns the names of the arrays of counts of these bags.
std::vector<std::string> count_names(const std::vector<ClickBag>& bags);

}  // namespace lockstep::datasets
