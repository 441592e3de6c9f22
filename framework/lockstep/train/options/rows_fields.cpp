// How arrays of files become inputs and targets: classes, augmentation.
#include <limits>

#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

struct Bounds {
  double low = 0, high = kMaxCount;
};

// A row of the group; its values are those of FieldOptions.
OptionRow field_row(std::string name, OptionValue value, std::string argument, std::string text,
                    std::string reason = {}, bool shapes_model = false, Bounds range = {}) {
  return {.name = std::move(name),
          .value = value,
          .argument = std::move(argument),
          .text = std::move(text),
          .low = range.low,
          .high = range.high,
          .resume = reason.empty() ? Resume::Noted : Resume::Never,
          .reason = std::move(reason),
          .shapes_model = shapes_model,
          .data = ForData::Fields};
}

}  // namespace

OptionGroup field_rows(Options& o) {
  data::FieldOptions& fields = o.dataset.fields;
  const std::string classes = "the targets are other classes";
  return {
      "Fields",
      {field_row("label", option_value(fields.label), "COLUMN",
                 "of csv: the column with the class of a row, a number or a text, in place of --targets; of "
                 "train_recsys: the "
                 "column or array of labels, numbers from 0 to 1",
                 classes, true),
       field_row("missing", option_value(fields.missing), "",
                 "of csv, cells that are empty, NA, nan, ...: error; skip: leave the row out; mean: for an input take "
                 "the mean of its column in the training samples, and leave out a row without target or class",
                 "the samples are others"),
       field_row("classes", option_value(fields.classes), "",
                 "number of classes of a target that has integers from 0 on; 0: as the training samples have", classes,
                 true, {.high = 65536}),
       field_row("ignore-index", option_value(fields.ignore_index), "",
                 "the integer of positions without a class, which count in no loss and no metric", {}, false,
                 {.low = std::numeric_limits<std::int32_t>::min(), .high = std::numeric_limits<std::int32_t>::max()}),
       field_row("symmetry", option_value(fields.symmetry), "",
                 "in training, turn samples at random: none, flips (along single axes), rotations (by 90 degrees) or "
                 "all"),
       field_row("vectors", option_value(fields.vectors), "NAMES",
                 "with --symmetry, arrays whose channels are components along the axes of the grid, which change with "
                 "them; NAME[1,0]: channel 1 is along the first axis"),
       field_row("pseudovectors", option_value(fields.pseudovectors), "NAMES",
                 "as --vectors, of vectors that keep their sign in a reflection, such as vorticity"),
       field_row("pseudoscalars", option_value(fields.pseudoscalars), "NAMES",
                 "arrays that change sign in a reflection, such as the vorticity of a plane; NAME[2]: channel 2")}};
}

}  // namespace lockstep::train
