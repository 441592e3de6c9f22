// The entry of the catalogue for a learned potential: positions of atoms, and their energies and forces, in HDF5 files
// such as `lockstep-data generate lennard-jones` writes. They keep their units: forces are derivatives of energies.
#pragma once

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// Fields: "position" (atoms, 3), "energy" () and "force" (atoms, 3), of one type. --inputs names the dataset of
// positions in --files, and --targets those of energies and forces.
data::DatasetEntry clusters_entry();

}  // namespace lockstep::datasets
