#include "lockstep/data/normalisation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/data/channel_walk.h"
#include "lockstep/data/convert_array.h"

namespace lockstep::data {
namespace {

void check_numbers(const FieldNormalisation& entry) {
  constexpr std::string_view kSite = "normalisation";
  check(!entry.field.empty(), kSite, "a field has no name");
  check(!entry.shift.empty() && entry.shift.size() == entry.scale.size(), kSite,
        "'{}': {} shifts and {} scales, expected one of each, or one of each per channel", entry.field,
        entry.shift.size(), entry.scale.size());
  check(entry.channel_axis >= -1 && (entry.channel_axis >= 0 || entry.shift.size() == 1), kSite,
        "'{}': {} shifts with channel axis {}, expected an axis from 0 on, or -1 and one shift", entry.field,
        entry.shift.size(), entry.channel_axis);
  check(!entry.log_offset || std::isfinite(*entry.log_offset), kSite, "'{}': offset {}, expected a finite number",
        entry.field, entry.log_offset.value_or(0));
  for (std::size_t c = 0; c < entry.shift.size(); ++c) {
    check(std::isfinite(entry.shift[c]), kSite, "'{}': shift {} of channel {}, expected a finite number", entry.field,
          entry.shift[c], c);
    check(std::isfinite(entry.scale[c]) && entry.scale[c] > 0, kSite,
          "'{}': scale {} of channel {}, expected a finite number above 0", entry.field, entry.scale[c], c);
  }
}

ChannelWalk walk_of(const FieldNormalisation& entry, const Shape& sample) {
  const ChannelWalk walk = channel_walk(entry.field, sample, entry.channel_axis);
  if (entry.shift.size() != 1 && static_cast<std::int64_t>(entry.shift.size()) != walk.channels) {
    fail("normalisation", "'{}': numbers for {} channels, but axis {} of a sample {} has {}", entry.field,
         entry.shift.size(), entry.channel_axis, sample.str(), walk.channels);
  }
  return walk;
}

// Calls one(element, shift, scale) for all elements of one sample.
template <class One>
void each_element(const FieldNormalisation& entry, const ChannelWalk& walk, One one) {
  std::int64_t at = 0;
  for (std::int64_t o = 0; o < walk.outer; ++o) {
    for (std::int64_t c = 0; c < walk.channels; ++c) {
      const std::size_t number = entry.shift.size() == 1 ? 0 : static_cast<std::size_t>(c);
      const double shift = entry.shift[number], scale = entry.scale[number];
      for (std::int64_t i = 0; i < walk.inner; ++i, ++at) one(at, shift, scale);
    }
  }
}

// Normalises one sample. Throws Error with the element and `sample` for a logarithm that does not exist.
template <class In, class Out>
void normalise_sample(const FieldNormalisation& entry, const ChannelWalk& walk, const In* in, Out* out,
                      std::int64_t sample) {
  if (!entry.log_offset) {
    return each_element(entry, walk, [&](std::int64_t i, double shift, double scale) {
      out[i] = static_cast<Out>((static_cast<double>(in[i]) - shift) / scale);
    });
  }
  const double offset = *entry.log_offset;
  each_element(entry, walk, [&](std::int64_t i, double shift, double scale) {
    const double x = static_cast<double>(in[i]) + offset;
    check(!(x <= 0), "normalisation", "'{}': element {} of sample {} plus the offset is {}, expected above 0 for log",
          entry.field, i, sample, x);
    out[i] = static_cast<Out>((math::log(x) - shift) / scale);
  });
}

template <class T>
void restore_sample(const FieldNormalisation& entry, const ChannelWalk& walk, T* values) {
  each_element(entry, walk, [&](std::int64_t i, double shift, double scale) {
    const double x = static_cast<double>(values[i]) * scale + shift;
    values[i] = static_cast<T>(entry.log_offset ? math::exp(x) - *entry.log_offset : x);
  });
}

// Calls one(pointer to the sample's first element, number of the sample) for each sample of a batch.
template <class T, class One>
void each_sample(Tensor& batch, const ChannelWalk& walk, One one) {
  if (batch.elements() == 0) return;
  T* values = batch.data<T>().data();
  for (std::int64_t s = 0; s < batch.shape()[0]; ++s) one(values + s * walk.elements(), s);
}

void check_batch(std::string_view field, const Tensor& values) {
  check(values.shape().rank() > 0 && (values.dtype() == DType::F32 || values.dtype() == DType::F64), "normalisation",
        "'{}': a tensor {} of {}, expected (samples, ...) of f32 or f64", field, values.shape().str(),
        name_of(values.dtype()));
}

template <class Out>
void normalise_to(const FieldNormalisation& entry, const Field& field, const std::byte* in, std::byte* out,
                  std::int64_t sample) {
  const ChannelWalk walk = walk_of(entry, field.shape);
  auto* to = reinterpret_cast<Out*>(out);
  if (field.dtype == DType::F32) return normalise_sample(entry, walk, reinterpret_cast<const float*>(in), to, sample);
  if (field.dtype == DType::F64) return normalise_sample(entry, walk, reinterpret_cast<const double*>(in), to, sample);
  std::vector<double> values(static_cast<std::size_t>(walk.elements()));
  convert_array(field.dtype, in, DType::F64, reinterpret_cast<std::byte*>(values.data()), walk.elements());
  normalise_sample(entry, walk, values.data(), to, sample);
}

}  // namespace

Normalisation::Normalisation(std::vector<FieldNormalisation> fields) : fields_(std::move(fields)) {
  for (const FieldNormalisation& entry : fields_) {
    check_numbers(entry);
    check(find(entry.field) == &entry, "normalisation", "field '{}' is there twice", entry.field);
  }
}

const FieldNormalisation* Normalisation::find(std::string_view field) const {
  const auto found = std::ranges::find(fields_, field, &FieldNormalisation::field);
  return found == fields_.end() ? nullptr : &*found;
}

Tensor Normalisation::apply(std::string_view field, Tensor values) const {
  const FieldNormalisation* entry = find(field);
  if (entry == nullptr) return values;
  check_batch(field, values);
  const ChannelWalk walk = walk_of(*entry, values.shape().tail());
  const auto one = [&](auto* sample, std::int64_t s) { normalise_sample(*entry, walk, sample, sample, s); };
  if (values.dtype() == DType::F32) {
    each_sample<float>(values, walk, one);
  } else {
    each_sample<double>(values, walk, one);
  }
  return values;
}

Tensor Normalisation::restore(std::string_view field, Tensor values) const {
  const FieldNormalisation* entry = find(field);
  if (entry == nullptr) return values;
  check_batch(field, values);
  const ChannelWalk walk = walk_of(*entry, values.shape().tail());
  const auto one = [&](auto* sample, std::int64_t) { restore_sample(*entry, walk, sample); };
  if (values.dtype() == DType::F32) {
    each_sample<float>(values, walk, one);
  } else {
    each_sample<double>(values, walk, one);
  }
  return values;
}

Normalise::Normalise(Normalisation normalisation, DType integers_as)
    : normalisation_(std::move(normalisation)), integers_as_(integers_as) {
  check(integers_as == DType::F32 || integers_as == DType::F64, "normalisation",
        "integers become {}, expected f32 or f64", name_of(integers_as));
}

std::vector<Field> Normalise::fields(const std::vector<Field>& in) const {
  std::vector<Field> out = in;
  for (const FieldNormalisation& entry : normalisation_.fields()) {
    Field& field = out[find_field("normalisation", in, entry.field)];
    walk_of(entry, field.shape);
    check(field.dtype != DType::BF16, "normalisation", "field '{}' is bf16, expected another type", field.name);
    if (!is_floating(field.dtype)) field.dtype = integers_as_;
  }
  return out;
}

void Normalise::apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
                      std::span<std::byte* const> out) const {
  for (std::size_t f = 0; f < shape.size(); ++f) {
    if (shape[f].bytes() == 0) continue;
    const FieldNormalisation* entry = normalisation_.find(shape[f].name);
    const DType type = is_floating(shape[f].dtype) ? shape[f].dtype : integers_as_;
    if (entry == nullptr) {
      std::memcpy(out[f], in[f], shape[f].bytes());
    } else if (type == DType::F32) {
      normalise_to<float>(*entry, shape[f], in[f], out[f], key.index);
    } else {
      normalise_to<double>(*entry, shape[f], in[f], out[f], key.index);
    }
  }
}

}  // namespace lockstep::data
