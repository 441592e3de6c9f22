// The checks of options about images, which need neither files nor ranks.
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/data/image_sets.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kImageChecksSite = "options";

void check_normalising(const DatasetOptions& o) {
  for (const double value : o.mean)
    check(value >= 0 && value <= 1, kImageChecksSite,
          "--mean has the number {}, expected numbers from 0 to 1, as pixels are", value);
  for (const double value : o.stddev)
    check(value > 0 && value <= 1, kImageChecksSite,
          "--std has the number {}, expected numbers above 0 and at most 1, of pixels from 0 to 1", value);
  check(o.mean.empty() || o.images.source == PixelSource::Auto, kImageChecksSite,
        "--mean and --std are given beside --mean-std, expected one of the two");
}

void check_interval(std::string_view option, const std::vector<double>& numbers, double most) {
  check(numbers.size() == 2 && numbers[0] > 0 && numbers[0] <= numbers[1] && numbers[1] <= most, kImageChecksSite,
        "--{} is {}, expected two numbers with a comma between them, above 0{}, the smaller one first", option,
        joined(numbers, ","), most == 1 ? " and at most 1" : "");
}

// Refuses numbers that have no effect: they are probably a mistake.
void check_effects(const DatasetOptions& o) {
  const AugmentOptions &a = o.images.augment, usual{};
  const MixingOptions& mixing = o.images.mixing;
  check((o.augment && o.images.size > 0) || (a.crop_scale == usual.crop_scale && a.crop_ratio == usual.crop_ratio),
        kImageChecksSite, "--crop-scale or --crop-ratio without {}, expected all or none",
        o.augment ? "--image-size" : "--augment, which crops images");
  check(o.augment || (a.hflip < 0 && a.vflip == 0), kImageChecksSite,
        "--hflip or --vflip without --augment, which flips images, expected both or none");
  check(a.policy == AutoAugment::RandAugment ||
            (a.ra_operations == usual.ra_operations && a.ra_magnitude == usual.ra_magnitude),
        kImageChecksSite, "--ra-operations or --ra-magnitude without --auto-augment ra, expected both or none");
  check(!a.erase_noise || a.random_erase > 0, kImageChecksSite, "--erase-noise without --random-erase, expected both");
  check(mixing.any() || mixing.probability == 1, kImageChecksSite,
        "--mixup-prob is {} without --mixup-alpha or --cutmix-alpha, expected one of them too", mixing.probability);
  check((mixing.mixup_alpha > 0 && mixing.cutmix_alpha > 0) || mixing.switch_probability == 0.5, kImageChecksSite,
        "--mixup-switch-prob is {} without --mixup-alpha and --cutmix-alpha, expected both of them too",
        mixing.switch_probability);
}

void check_changes(const DatasetOptions& o) {
  const AugmentOptions& a = o.images.augment;
  check_interval("crop-scale", a.crop_scale, 1);
  check_interval("crop-ratio", a.crop_ratio, HUGE_VAL);
  check_effects(o);
  const std::size_t jitters = a.color_jitter.size();
  check(jitters == 0 || jitters == 1 || jitters == 3 || jitters == 4, kImageChecksSite,
        "--color-jitter has {} numbers, expected 1, or brightness,contrast,saturation with or without hue", jitters);
}

}  // namespace

void check_image_options(const DatasetEntry& entry, const DatasetOptions& o) {
  const ImageSetOptions& images = o.images;
  check_normalising(o);
  check_changes(o);
  check(images.size == 0 || o.resize == 0, kImageChecksSite,
        "--image-size {} and --resize {} are both given, expected one of the two: --image-size crops, --resize scales",
        images.size, o.resize);
  check(images.size > 0 || images.eval_resize == 0, kImageChecksSite,
        "--val-resize-size is {} without --image-size, expected both: the shorter side before the centre is cropped",
        images.eval_resize);
  check(images.eval_resize == 0 || images.eval_resize >= images.size, kImageChecksSite,
        "--val-resize-size is {}, expected at least --image-size {}", images.eval_resize, images.size);
  check(entry.kind == DatasetKind::Encoded || (images.channels == 3 && !images.full_decode), kImageChecksSite,
        "--channels and --full-decode are for image files, and {} has none", entry.name);
  check(images.channels == 3 || images.channels == 1, kImageChecksSite, "--channels is {}, expected 3 or 1",
        images.channels);
}

}  // namespace lockstep::data
