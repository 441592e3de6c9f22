// The data of a run: the sets that it trains and evaluates on, and the transforms between a set and the inputs of the
// model. A session takes it from an entry of a catalogue (data/catalogue.h) or from its caller.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/image_data.h"
#include "lockstep/data/stream_source.h"
#include "lockstep/data/transforms.h"

namespace lockstep::data {

struct RunData {
  std::unique_ptr<Dataset> train{}, eval{};                     // null eval: the run has no evaluation
  std::optional<StreamSource> stream{};                         // the training samples, in place of `train`
  std::map<std::string, std::unique_ptr<Dataset>> more_eval{};  // further evaluation sets, by name
  Transforms train_transforms{}, eval_transforms{};             // all evaluation sets take eval_transforms
  PixelStatistics pixels{};  // of images, one value per channel; empty for other data
  std::string record{};  // the text of a JSON object that checkpoints contain: what predictions need; empty: nothing

  std::int64_t classes() const { return train ? train->classes() : 0; }
  // Returns the fields of a training sample before all transforms.
  const std::vector<Field>& source_fields() const { return stream ? stream->fields : train->fields(); }
  // Returns the fields of a sample after eval_transforms: the model's inputs, without the dimension of samples.
  std::vector<Field> fields() const;
  // Returns the shape of one of these fields; throws Error, with the known names, if there is none.
  Shape shape_of(std::string_view field) const;
  Shape image_shape() const { return shape_of("image"); }  // (channels, height, width)

  // Throws Error unless there is a training set or a stream, and all sets give the same fields for training and
  // evaluation.
  void check() const;
};

// Appends to both lists of transforms a conversion of floating-point fields to `floats`, F32 or F64, where a field has
// another type. Throws Error where transforms do not accept the fields before them.
void convert_floats(RunData& data, DType floats);

}  // namespace lockstep::data
