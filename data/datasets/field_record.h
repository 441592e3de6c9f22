// A checkpoint's record of the fields of its run (data::PredictionFacts::record): names, shapes and normalisation. With
// it, other files become inputs of the same model, and its predictions become arrays in the units of the training
// files. Values; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/field_axes.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/normalisation.h"
#include "lockstep/metrics/units.h"

namespace lockstep::datasets {

// One array of the training files.
struct RecordedField {
  std::string name{};
  Shape shape{};                       // of a sample, as in the files; with channels: one dimension more than spatial
  std::vector<std::string> columns{};  // of a table: the names of the elements
  std::vector<double> means{};         // of a table's inputs: over the training samples, in place of missing values
};

struct FieldRecord {
  std::vector<RecordedField> inputs{}, targets{};  // targets: empty for classes
  FieldAxes axes{};
  data::Normalisation normalisation{};   // by the names of inputs and targets
  Shape input{};                         // of a sample of the model's field "input"
  std::vector<data::Field> predicted{};  // the model's other fields: "target", or of classes "label"
  std::int64_t classes = 0;
  std::vector<std::int64_t> class_samples{};  // how often each class was there in training; empty: not counted
  std::vector<std::string> class_names{};     // empty: they have none

  // JSON. parse() throws Error at site "data" for a text that is no such record.
  std::string text() const;
  static FieldRecord parse(std::string_view text);
};

// Returns the arrays `names` of `fields` as a record has them. `columns`: of a table, the names of all its columns.
// Throws Error for a name that is not there.
std::vector<RecordedField> recorded(const std::vector<data::Field>& fields, const std::vector<std::string>& names,
                                    const std::vector<std::string>& columns);

// Returns the recorded normalisation for arrays that may have other names: `inputs`, and `targets` unless there are
// none, are fields of `fields` in the order of the record. Throws Error at site "data" for another number of arrays or
// channels, and for names of the record in another order.
data::Normalisation normalisation_of(const FieldRecord& record, const std::vector<data::Field>& fields,
                                     const std::vector<std::string>& inputs, const std::vector<std::string>& targets);

// Returns the recorded fields `predicted`, for an input of this shape: where the spatial sizes of a field were those of
// the input, they are those of `input` now. Floating-point fields get the type `floats`.
std::vector<data::Field> absent_fields(const FieldRecord& record, const Shape& input, DType floats);

// Returns how the channels of the model's target were normalised: an entry for each target that is a number, or for
// each column of a table; empty where there are none. `axis` becomes the dimension of predictions that counts channels.
std::vector<metrics::TargetUnits> units_of(const FieldRecord& record, int& axis);

// Returns the function that divides predictions (samples, channels, spatial sizes ...), of series (samples, time,
// features), into the recorded targets, and undoes their normalisation: data::PredictionFacts::decode. Of a table, each
// column becomes an array of its own. It throws Error at site "predict" for another number of channels or dimensions.
std::function<std::vector<data::NamedTensor>(Tensor)> decoder(const FieldRecord& record);

}  // namespace lockstep::datasets
