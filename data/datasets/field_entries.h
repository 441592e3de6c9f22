// The entries of the catalogue whose samples are arrays of a user's files: HDF5, NumPy's files, tables. DatasetOptions'
// `fields` name files, inputs and targets. Whatever the file has, a model gets two fields: "input", floating point, and
// "target", floating point or, for classes, I32.
#pragma once

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

data::DatasetEntry hdf5_entry();
data::DatasetEntry arrays_entry();  // .npy and .npz
data::DatasetEntry csv_entry();

// Divides a list "a,b[0,1],c" at the commas outside of brackets. Throws Error at site "options" for an empty name.
std::vector<std::string> split_names(std::string_view option, std::string_view text);

}  // namespace lockstep::datasets
