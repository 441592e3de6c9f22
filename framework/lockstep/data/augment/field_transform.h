// The base of transforms that change one field of a sample and copy its other fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/data/transforms.h"

namespace lockstep::data {

class FieldTransform : public Transform {
 public:
  std::vector<Field> fields(const std::vector<Field>& in) const final;
  void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const final;

 protected:
  // `site` names the transform in messages, `field` the field that it changes.
  FieldTransform(std::string site, std::string field) : site_(std::move(site)), field_(std::move(field)) {}

  // Returns the field after the transform; throws Error for a type or shape that it does not accept.
  virtual Field changed(const Field& before) const = 0;
  // Reads the field of a sample from `in` and writes it to `out`. Fields without elements are left out.
  virtual void change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const = 0;

  // Throw Error unless the field is an image of bytes with 1 or 3 channels, or floating (F32 or F64) and not a scalar.
  void expect_bytes(const Field& before) const;
  void expect_floats(const Field& before) const;

  const std::string& site() const { return site_; }

 private:
  std::string site_, field_;
};

}  // namespace lockstep::data
