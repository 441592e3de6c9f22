// The entries of the catalogue whose samples are image files, in folders or in packed records (`lockstep pack`).
// DatasetOptions' `images` say how they are decoded, cropped and changed.
#pragma once

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

data::DatasetEntry folder_entry();   // DIR/train/CLASS/FILE and DIR/val/CLASS/FILE (data/datasets/image_folder.h)
data::DatasetEntry records_entry();  // DIR/train.index and DIR/eval.index (lockstep/data/records/record_reader.h)

}  // namespace lockstep::datasets
