// The entries of the catalogue whose samples are arrays of a user's files: HDF5, NumPy's files; tables: csv_entry.h.
// DatasetOptions' `fields` name files, inputs and targets. Whatever the file has, a model gets two fields: "input",
// floating point, and "target", floating point or, for classes (TargetKind), I32 without a dimension of channels.
#pragma once

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

data::DatasetEntry hdf5_entry();
data::DatasetEntry arrays_entry();  // .npy and .npz

}  // namespace lockstep::datasets
