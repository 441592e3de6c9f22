#include "lockstep/data/augment/field_transform.h"

#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::data {

std::vector<Field> FieldTransform::fields(const std::vector<Field>& in) const {
  std::vector<Field> out = in;
  Field& field = out[find_field(site_, in, field_)];
  field = changed(field);
  return out;
}

void FieldTransform::apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
                           std::span<std::byte* const> out) const {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].bytes() == 0) continue;
    if (shape[i].name == field_) {
      change(key, shape[i], in[i], out[i]);
    } else {
      std::memcpy(out[i], in[i], shape[i].bytes());
    }
  }
}

void FieldTransform::expect_bytes(const Field& before) const {
  const bool fits = before.dtype == DType::U8 && before.shape.rank() == 3 &&
                    (before.shape[0] == 1 || before.shape[0] == 3) && before.shape.elements() > 0;
  check(fits, site_, "'{}' is {} {}, expected u8 (1 or 3 channels, height, width), above 0", before.name,
        name_of(before.dtype), before.shape.str());
}

void FieldTransform::expect_floats(const Field& before) const {
  check((before.dtype == DType::F32 || before.dtype == DType::F64) && before.shape.rank() > 0, site_,
        "'{}' is {} {}, expected f32 or f64 with at least one dimension", before.name, name_of(before.dtype),
        before.shape.str());
}

}  // namespace lockstep::data
