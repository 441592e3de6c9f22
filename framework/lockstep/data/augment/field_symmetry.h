// Random rotations by multiples of 90 degrees and reflections of physical fields on a regular grid of 1 to 3
// dimensions: a sample stays a solution of equations that have no preferred direction. Values move to other grid
// points; components of vectors also change sign and place with the axes, pseudovectors (vorticity, magnetic field) and
// pseudoscalars (helicity, vorticity in 2-D) change sign in a reflection besides. By (seed, epoch, sample); all fields
// of a sample change alike. Immutable: any thread may call it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/data/transforms.h"

namespace lockstep::data {

// A field of shape (channels, axis 0, axis 1, ...), or (channels), which has no grid: a force, a mean velocity.
struct SymmetricField {
  std::string name{};
  // Each vector lists one channel for each axis of the grid: vectors = {{1, 0}} for a grid (y, x) whose channel 0 is
  // the velocity along x and channel 1 that along y. Channels that no list names are scalars.
  std::vector<std::vector<int>> vectors{}, pseudovectors{};
  std::vector<int> pseudoscalars{};
};

struct FieldSymmetryOptions {
  std::vector<SymmetricField> fields{};  // other fields of a sample stay as they are
  int dimensions = 2;                    // axes of the grid, 1 to 3
  bool flips = true;                     // reflections of single axes
  bool rotations = true;                 // rotations by 90, 180 and 270 degrees
};

// One symmetry of the grid: position x of the result is position y of the sample, where y runs along axis[a] as x runs
// along a, backwards if flip[a]. With both kinds there are 2, 8 and 48 of them for 1, 2 and 3 dimensions.
struct GridSymmetry {
  std::array<int, 3> axis{0, 1, 2};
  std::array<bool, 3> flip{};

  bool operator==(const GridSymmetry&) const = default;
  // +1: a rotation; -1: a reflection, perhaps with a rotation.
  int determinant(int dimensions) const;
};

// Chooses among all symmetries that the options allow and that keep the grid's shape: axes of different length are not
// exchanged.
class FieldSymmetry : public Transform {
 public:
  // Throws Error for dimensions outside 1 to 3, and lists that name a channel twice or have another length.
  explicit FieldSymmetry(FieldSymmetryOptions options);

  std::vector<Field> fields(const std::vector<Field>& in) const override;
  void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override;

  // The symmetry of a sample on a grid of these sides.
  GridSymmetry choose(const SampleKey& key, const std::vector<std::int64_t>& grid) const;

 private:
  // Where a channel of the result comes from, and whether its sign changes.
  struct Source {
    std::int64_t channel = 0;
    bool negative = false;
  };
  std::vector<Source> sources(const SymmetricField& field, std::int64_t channels, const GridSymmetry& symmetry) const;
  // The sides of the grid that all fields share; empty: no field has one.
  std::vector<std::int64_t> grid_of(const std::vector<Field>& fields) const;
  const SymmetricField* find(const std::string& name) const;

  FieldSymmetryOptions options_;
  std::vector<GridSymmetry> all_;  // that the options allow
};

}  // namespace lockstep::data
