// Sizes, numbers and random changes of images, for programs whose catalogue has image files.
#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

OptionGroup image_rows(Options& o) {
  data::ImageSetOptions& images = o.dataset.images;
  OptionGroup group{
      "Images",
      {
          {.name = "image-size",
           .value = option_value(images.size),
           .text = "rows and columns of the model's images: a random part of a training image scaled to it (with "
                   "--augment), the centre of an evaluation image; 0: all images have one size and keep it",
           .high = 4096,
           .resume = Resume::Never,
           .reason = "images of another size are other samples",
           .shapes_model = true},
          {.name = "val-resize-size",
           .value = option_value(images.eval_resize),
           .text = "with --image-size, pixels of the shorter side to which evaluation images are scaled before their "
                   "centre is taken; 0: --image-size times 256/224",
           .high = 8192,
           .effect = Effect::Order},
          {.name = "channels",
           .value = option_value(images.channels),
           .text = "channels of images in files: 3 (RGB) or 1 (grey)",
           .low = 1,
           .high = 3,
           .resume = Resume::Never,
           .reason = "images with other channels are other samples",
           .shapes_model = true},
          {.name = "full-decode",
           .value = option_value(images.full_decode),
           .text = "decode JPEGs at their full size, for the pixels of Pillow and torchvision; else those much larger "
                   "than --image-size at 1/2, 1/4 or 1/8, which is faster"},
          {.name = "mean-std",
           .value = option_value(images.source),
           .text = "mean and deviation by which pixels are normalised: imagenet; measured, of the training images; "
                   "auto: those known of the data set, else ImageNet's for files of 3 channels, else measured",
           .resume = Resume::Never,
           .reason = "the model sees other numbers"},
      }};
  for (OptionRow& row : group.rows) row.data = ForData::ImageSets;
  return group;
}

namespace {

std::vector<OptionRow> change_rows(data::AugmentOptions& a) {
  return {
      {.name = "crop-scale",
       .value = option_value(a.crop_scale),
       .argument = "MIN,MAX",
       .text = "part of the image's area that a random crop has, with --image-size",
       .high = 1,
       .above_low = true},
      {.name = "crop-ratio",
       .value = option_value(a.crop_ratio),
       .argument = "MIN,MAX",
       .text = "width to height of that crop",
       .high = 100,
       .above_low = true},
      {.name = "hflip",
       .value = option_value(a.hflip),
       .text = "probability of a flip left to right, with --augment; -1: 0.5, and 0 for digits",
       .low = -1,
       .high = 1},
      {.name = "vflip",
       .value = option_value(a.vflip),
       .text = "probability of a flip top to bottom, with --augment",
       .high = 1},
      {.name = "color-jitter",
       .value = option_value(a.color_jitter),
       .text = "brightness, contrast and saturation change by factors of 1 - X to 1 + X; or X,X,X for each, or X,X,X,H "
               "with a turn of the hue by up to H, 0.5 at most",
       .high = 10},
      {.name = "auto-augment",
       .value = option_value(a.policy),
       .text = "random operations on training images: ra (RandAugment) or none"},
      {.name = "ra-operations",
       .value = option_value(a.ra_operations),
       .text = "operations of RandAugment for each image",
       .low = 1,
       .high = 14},
      {.name = "ra-magnitude",
       .value = option_value(a.ra_magnitude),
       .text = "strength of RandAugment's operations",
       .high = 30},
      {.name = "random-erase",
       .value = option_value(a.random_erase),
       .text = "probability that a rectangle of a training image is erased",
       .high = 1},
      {.name = "erase-noise", .value = option_value(a.erase_noise), .text = "erase with normal noise in place of 0"},
      {.name = "cutout",
       .value = option_value(a.cutout),
       .text = "side in pixels of a square of each training image that becomes 0; 0: none",
       .high = 4096},
  };
}

}  // namespace

OptionGroup augment_rows(Options& o) {
  data::MixingOptions& mixing = o.dataset.images.mixing;
  OptionGroup group{"Augmentation", change_rows(o.dataset.images.augment)};
  const std::vector<OptionRow> mixes{
      {.name = "mixup-alpha",
       .value = option_value(mixing.mixup_alpha),
       .text = "mixup: samples of a batch are mixed in pairs, with shares of the beta distribution (X, X); 0: none",
       .high = 1000},
      {.name = "cutmix-alpha",
       .value = option_value(mixing.cutmix_alpha),
       .text = "CutMix: a rectangle of each sample is that of its partner, with the area of such a share; 0: none",
       .high = 1000},
      {.name = "mixup-prob",
       .value = option_value(mixing.probability),
       .text = "probability that a pair is mixed, with --mixup-alpha or --cutmix-alpha",
       .high = 1},
      {.name = "mixup-switch-prob",
       .value = option_value(mixing.switch_probability),
       .text = "probability of CutMix for a mixed pair, with both",
       .high = 1},
  };
  group.rows.insert(group.rows.end(), mixes.begin(), mixes.end());
  for (OptionRow& row : group.rows) row.data = ForData::ImageSets;
  return group;
}

}  // namespace lockstep::train
