#include "lockstep/data/batch_mix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/core/random.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kMix = "batch mix";

// A number of the gamma distribution with scale 1 (Marsaglia and Tsang, "A simple method for generating gamma
// variables" (2000)).
double gamma_number(RandomStream& random, double shape) {
  if (shape < 1) {
    const double larger = gamma_number(random, shape + 1);
    return larger * math::pow(random.uniform(), 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x, v = root * root * root;
    if (v <= 0) continue;
    if (math::log(random.uniform()) < 0.5 * x * x + d - d * v + d * math::log(v)) return d * v;
  }
}

double beta_number(RandomStream& random, double alpha) {
  const double a = gamma_number(random, alpha), b = gamma_number(random, alpha);
  if (a + b > 0) return a / (a + b);
  return random.below(2) == 1 ? 1 : 0;  // a small alpha, whose numbers are all near 0 or 1
}

// Writes the shares of two classes; labels are checked.
template <class T>
void write_shares(std::int64_t classes, double own_share, std::int32_t own, std::int32_t other, T* out) {
  for (const std::int32_t label : {own, other})
    check(label >= 0 && label < classes, kMix, "'label' is {}, expected 0 to {}", label, classes - 1);
  std::fill_n(out, classes, T{0});
  const T share = static_cast<T>(own_share);
  out[own] += share;
  out[other] += T{1} - share;
}

// The part of `length` around a random centre, cut at the borders.
Range cut_axis(RandomStream& random, std::int64_t length, double part) {
  const auto centre = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(length)));
  const auto size = static_cast<std::int64_t>(static_cast<double>(length) * part);
  const std::int64_t begin = centre - size / 2;
  return {std::max<std::int64_t>(begin, 0), std::min(begin + size, length)};
}

}  // namespace

BatchMix::BatchMix(MixOptions options) : options_(options) {
  check(options.classes > 0, kMix, "{} classes, expected at least 1", options.classes);
  check(options.mixup_alpha >= 0 && options.cutmix_alpha >= 0 && options.mixup_alpha + options.cutmix_alpha > 0, kMix,
        "alpha {} for mixup and {} for CutMix, expected at least 0, and one above 0", options.mixup_alpha,
        options.cutmix_alpha);
  for (const double p : {options.probability, options.cutmix_probability})
    check(p >= 0 && p <= 1, kMix, "probability {}, expected 0 to 1", p);
}

std::vector<Field> BatchMix::fields(const std::vector<Field>& in) const {
  const Field& image = in[find_field(kMix, in, "image")];
  check(
      (image.dtype == DType::F32 || image.dtype == DType::F64) && image.shape.rank() == 3 && image.shape.elements() > 0,
      kMix, "'image' is {} {}, expected f32 or f64 (channels, height, width) above 0", name_of(image.dtype),
      image.shape.str());
  const std::size_t at = find_field(kMix, in, "label");
  check(in[at].dtype == DType::I32 && in[at].shape.rank() == 0, kMix, "'label' is {} {}, expected i32 ()",
        name_of(in[at].dtype), in[at].shape.str());
  std::vector<Field> out = in;
  out.push_back({.name = std::string(kLabelShares), .shape = {options_.classes}, .dtype = image.dtype});
  return out;
}

std::int64_t BatchMix::partner(std::int64_t position, std::int64_t size) {
  const std::int64_t other = position ^ 1;
  return other < size ? other : std::max<std::int64_t>(position - 1, 0);
}

Range BatchMix::needed(const StepSamples& step) {
  if (step.local.size() == 0) return step.local;
  return {std::min(step.local.begin, partner(step.local.begin, step.global_size)),
          std::max(step.local.end, partner(step.local.end - 1, step.global_size) + 1)};
}

BatchMix::Mixture BatchMix::choose(const StepSamples& step, std::uint64_t seed, std::int64_t position,
                                   const Shape& image) const {
  const std::int64_t other = partner(position, step.global_size);
  // Partners get one mixture, and the last one of an odd number another one than its neighbour.
  const std::int64_t first = (position ^ 1) == other ? std::min(position, other) : position;
  RandomStream random(mix(mix(seed, hash_name("batch mix")), static_cast<std::uint64_t>(step.epoch)),
                      static_cast<std::uint64_t>(step.offset + first));
  const bool mixed = random.uniform() < options_.probability,
             prefers_cut = random.uniform() < options_.cutmix_probability;
  if (!mixed || other == position) return {};
  const bool cut = options_.mixup_alpha == 0 || (options_.cutmix_alpha > 0 && prefers_cut);
  if (!cut) return {.own = beta_number(random, options_.mixup_alpha)};
  const double side = std::sqrt(1 - beta_number(random, options_.cutmix_alpha));
  Mixture mixture{.rows = cut_axis(random, image[1], side), .columns = cut_axis(random, image[2], side)};
  mixture.own =
      1 - static_cast<double>(mixture.rows.size() * mixture.columns.size()) / static_cast<double>(image[1] * image[2]);
  return mixture;
}

template <class T>
void BatchMix::mix_image(const Mixture& mixture, const Shape& shape, const T* own, const T* other, T* out) const {
  const std::int64_t height = shape[1], width = shape[2], elements = shape.elements();
  if (mixture.rows.size() == 0 && mixture.own < 1) {
    const T share = static_cast<T>(mixture.own), rest = T{1} - share;
    for (std::int64_t i = 0; i < elements; ++i) out[i] = share * own[i] + rest * other[i];
    return;
  }
  std::copy_n(own, elements, out);
  for (std::int64_t c = 0; c < shape[0]; ++c) {
    for (std::int64_t y = mixture.rows.begin; y < mixture.rows.end; ++y) {
      const std::int64_t at = (c * height + y) * width + mixture.columns.begin;
      std::copy_n(other + at, mixture.columns.size(), out + at);
    }
  }
}

void BatchMix::apply(const StepSamples& step, std::uint64_t seed, const std::vector<Field>& shape,
                     const std::vector<Tensor>& in, std::vector<Tensor>& out) const {
  const std::int64_t first = needed(step).begin;
  const std::size_t image = find_field(kMix, shape, "image"), label = find_field(kMix, shape, "label");
  const bool single = shape[image].dtype == DType::F32;
  const auto mix_sample = [&]<class T>(T*, std::int64_t slot, std::int64_t own, std::int64_t other,
                                       const Mixture& mixture) {
    const std::int64_t elements = shape[image].shape.elements();
    const auto* pixels = reinterpret_cast<const T*>(in[image].raw());
    mix_image(mixture, shape[image].shape, pixels + own * elements, pixels + other * elements,
              reinterpret_cast<T*>(out[image].raw()) + slot * elements);
    const auto* labels = reinterpret_cast<const std::int32_t*>(in[label].raw());
    write_shares(options_.classes, mixture.own, labels[own], labels[other],
                 reinterpret_cast<T*>(out.back().raw()) + slot * options_.classes);
    reinterpret_cast<std::int32_t*>(out[label].raw())[slot] = labels[mixture.own >= 0.5 ? own : other];
  };
  for (std::int64_t slot = 0; slot < step.local.size(); ++slot) {
    const std::int64_t position = step.local.begin + slot;
    const std::int64_t own = position - first, other = partner(position, step.global_size) - first;
    const Mixture mixture = choose(step, seed, position, shape[image].shape);
    if (single) {
      mix_sample(static_cast<float*>(nullptr), slot, own, other, mixture);
    } else {
      mix_sample(static_cast<double*>(nullptr), slot, own, other, mixture);
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::size_t bytes = shape[i].bytes();
      if (i == image || i == label || bytes == 0) continue;
      std::memcpy(out[i].raw() + static_cast<std::size_t>(slot) * bytes,
                  in[i].raw() + static_cast<std::size_t>(own) * bytes, bytes);
    }
  }
}

LabelShares::LabelShares(std::int64_t classes, DType output) : classes_(classes), output_(output) {
  check(classes > 0, kMix, "{} classes, expected at least 1", classes);
  check(output == DType::F32 || output == DType::F64, kMix, "shares are {}, expected f32 or f64", name_of(output));
}

std::vector<Field> LabelShares::fields(const std::vector<Field>& in) const {
  const Field& label = in[find_field(kMix, in, "label")];
  check(label.dtype == DType::I32 && label.shape.rank() == 0, kMix, "'label' is {} {}, expected i32 ()",
        name_of(label.dtype), label.shape.str());
  std::vector<Field> out = in;
  out.push_back({.name = std::string(kLabelShares), .shape = {classes_}, .dtype = output_});
  return out;
}

void LabelShares::apply(const SampleKey& /*key*/, const std::vector<Field>& shape, std::span<const std::byte* const> in,
                        std::span<std::byte* const> out) const {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].bytes() > 0) std::memcpy(out[i], in[i], shape[i].bytes());
  }
  std::int32_t label = 0;
  std::memcpy(&label, in[find_field(kMix, shape, "label")], sizeof label);
  if (output_ == DType::F32) {
    write_shares(classes_, 1, label, label, reinterpret_cast<float*>(out.back()));
  } else {
    write_shares(classes_, 1, label, label, reinterpret_cast<double*>(out.back()));
  }
}

}  // namespace lockstep::data
