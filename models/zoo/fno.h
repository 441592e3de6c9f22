// Fourier neural operator over 1 to 3 spatial axes (Li et al. (2021), "Fourier neural operator for parametric partial
// differential equations", section 4). Layers: "lift", "spectral0", "pointwise0", ..., "project1", "project2".
#pragma once

#include <memory>
#include <vector>

#include "lockstep/nn/convolution.h"
#include "models/zoo/field_model.h"

namespace lockstep::models {

struct FnoConfig {
  std::int64_t in = 1, out = 1;  // channels
  Shape sizes{};                 // of the fields: the coordinates of their points, in [0, 1], are further inputs
  std::int64_t width = 32;       // channels inside
  std::int64_t depth = 4;        // Fourier layers
  std::int64_t modes = 12;       // frequencies per axis, fewer where an axis has fewer
};

// Multiplies the low frequencies of x (N, channels, sizes) by a complex matrix each: eq. 5. Parameter: weight
// (channels, channels, frequencies ..., 2).
class SpectralConv : public nn::Module {
 public:
  SpectralConv(std::int64_t channels, const Shape& sizes, std::int64_t modes);
  Value operator()(Value x) const;

 private:
  Shape sizes_, modes_;
  Parameter& weight_;
};

template <int Axes>
class Fno final : public FieldModel {
 public:
  explicit Fno(const FnoConfig& config);
  Value operator()(Value input) const override;

 private:
  Value with_coordinates(Value input) const;

  Parameter& coordinates_;
  nn::Child<nn::Conv<Axes>> lift_, project1_, project2_;
  std::vector<std::unique_ptr<nn::Child<SpectralConv>>> spectral_;
  std::vector<std::unique_ptr<nn::Child<nn::Conv<Axes>>>> pointwise_;
};

FieldModelEntry fno_entry();

}  // namespace lockstep::models
