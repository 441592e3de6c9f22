// Puts fields of a sample behind each other as channels of one field, as models of fields want it: density (64, 64) and
// velocity (2, 64, 64) become input (3, 64, 64).
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/transforms.h"

namespace lockstep::data {

struct JoinOptions {
  std::string name{};                 // of the new field, which takes the place of the first of `fields`
  std::vector<std::string> fields{};  // in the order of their channels
  // The number of spatial dimensions: a field with so many gets a channel dimension, one with one more has it.
  int spatial_axes = 0;
  // The channel dimension is the last one, as in series (time, features), not the first one.
  bool channels_last = false;
};

// Immutable: any thread may call it.
class JoinFields : public Transform {
 public:
  // Throws Error for no fields, and for a number of spatial dimensions that is negative.
  explicit JoinFields(JoinOptions options);

  // Throws Error for a field that is not there, another number of dimensions, other spatial sizes than the first one
  // has, and different types.
  std::vector<Field> fields(const std::vector<Field>& in) const override;
  void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override;

 private:
  // Returns the positions in `in` of the joined fields, in the order of their channels.
  std::vector<std::size_t> places(const std::vector<Field>& in) const;

  JoinOptions options_;
};

// Returns the number of channels of a field with or without a channel dimension.
std::int64_t channels_of(const Field& field, int spatial_axes, bool channels_last = false);

}  // namespace lockstep::data
