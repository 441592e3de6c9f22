// How arrays of files become inputs and targets: classes, augmentation.
#include <limits>

#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

// A row of the group; its values are those of FieldOptions.
OptionRow field_row(std::string name, OptionValue value, std::string argument, std::string text,
                    std::string reason = {}) {
  return {.name = std::move(name),
          .value = value,
          .argument = std::move(argument),
          .text = std::move(text),
          .resume = reason.empty() ? Resume::Noted : Resume::Never,
          .reason = std::move(reason),
          .data = ForData::Fields};
}

}  // namespace

OptionGroup field_rows(Options& o) {
  data::FieldOptions& fields = o.dataset.fields;
  const std::string classes = "the targets are other classes";
  OptionGroup group{
      "Fields",
      {field_row("label", option_value(fields.label), "COLUMN",
                 "of csv: the column with the class of a row, a number or a text, in place of --targets", classes),
       field_row("missing", option_value(fields.missing), "",
                 "of csv, cells that are empty, NA, nan, ...: error; skip: leave the row out; mean: for an input take "
                 "the mean of its column in the training samples, and leave out a row without target or class",
                 "the samples are others"),
       field_row("classes", option_value(fields.classes), "",
                 "number of classes of a target that has integers from 0 on; 0: as the training samples have", classes),
       field_row("ignore-index", option_value(fields.ignore_index), "",
                 "the integer of positions without a class, which count in no loss and no metric"),
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
  for (OptionRow& row : group.rows) {
    if (row.name == "ignore-index") row.low = std::numeric_limits<std::int32_t>::min();
    if (row.name == "ignore-index") row.high = std::numeric_limits<std::int32_t>::max();
    if (row.name == "classes") row.high = 65536;
    row.shapes_model = row.name == "classes" || row.name == "label";
    if (row.name == "symmetry") row.names = {"none", "flips", "rotations", "all"};
  }
  return group;
}

}  // namespace lockstep::train
