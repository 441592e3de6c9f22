// The ranges of the values of a data set, and its numbers that are not finite, with sample and element. For checks of
// files before training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct FieldReport {
  Field field{};
  std::int64_t nan = 0, infinite = 0;                  // number of elements
  std::int64_t first_sample = -1, first_element = -1;  // of the first element that is not finite; -1: all are finite
  std::string first_place{};                           // Dataset::locate() of that sample
  double least = 0, most = 0;                          // of the finite elements; 0 if there are none

  bool finite() const { return nan + infinite == 0; }
  // "density (2, 64) f32: -0.5 to 3", or "...; 3 NaN, 0 infinite, the first at element 17 of run1.h5, sample 2".
  std::string str() const;
};

// Reads the samples of a range, one after the other, and reports on each field. Throws what Dataset::read() throws.
std::vector<FieldReport> inspect(const Dataset& dataset, Range samples);
inline std::vector<FieldReport> inspect(const Dataset& dataset) { return inspect(dataset, {0, dataset.size()}); }

}  // namespace lockstep::data
