#include "lockstep/data/image_sets.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/data/augment/color_jitter.h"
#include "lockstep/data/augment/gaussian_noise.h"
#include "lockstep/data/augment/geometry.h"
#include "lockstep/data/augment/rand_augment.h"
#include "lockstep/data/augment/random_erasing.h"
#include "lockstep/data/batch_mix.h"
#include "lockstep/data/normalisation.h"
#include "lockstep/data/resize.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kImageSetsSite = "options";
constexpr std::int64_t kMostTries = 100;  // files that may be unreadable before the one whose size counts

bool is_image(const Field& field) {
  return field.name == "image" && field.dtype == DType::U8 && field.shape.rank() == 3;
}

const Field* image_of(const RunData& data) {
  const std::vector<Field>& fields = data.train->fields();
  const auto image = std::ranges::find_if(fields, is_image);
  return image == fields.end() ? nullptr : &*image;
}

CropOptions crop_options(const DatasetOptions& o, Split split) {
  const ImageSetOptions& images = o.images;
  const AugmentOptions& a = images.augment;
  const bool random = split == Split::Train && o.augment;
  return {.crop = random ? Crop::Random : Crop::Centre,
          .height = images.size,
          .width = images.size,
          .shorter_side = images.eval_side(),
          .min_area = a.crop_scale[0],
          .max_area = a.crop_scale[1],
          .min_ratio = a.crop_ratio[0],
          .max_ratio = a.crop_ratio[1]};
}

ColorJitterOptions jitter_options(const std::vector<double>& numbers) {
  const auto at = [&](std::size_t i) {
    return numbers.size() == 1 && i < 3 ? numbers[0] : i < numbers.size() ? numbers[i] : 0;
  };
  return {.brightness = at(0), .contrast = at(1), .saturation = at(2), .hue = at(3)};
}

double flip_probability(const DatasetEntry& entry, const DatasetOptions& o) {
  if (!o.augment) return 0;
  return o.images.augment.hflip >= 0 ? o.images.augment.hflip : entry.pixels.mirrored ? 0.5 : 0;
}

// The facts from which the transforms of training and evaluation are made.
struct Making {
  const DatasetEntry& entry;
  const DatasetOptions& options;
  Shape image;   // (channels, height, width) of the data set's images
  bool cropped;  // they were cropped as they were decoded
};

ImageOptions converted(const Making& m, const PixelStatistics& pixels) {
  return {.mean = pixels.mean, .stddev = pixels.stddev, .output = m.options.floats};
}

void add_crop(Transforms& transforms, const Making& m, Split split) {
  if (m.options.images.size > 0 && !m.cropped)
    transforms.push_back(std::make_shared<CropImage>(crop_options(m.options, split)));
}

void add_resize(Transforms& transforms, const Making& m) {
  if (m.options.resize > 0) transforms.push_back(std::make_shared<ResizeImages>(m.image, m.options.resize));
}

// In torchvision's order: crop, flips, colours, RandAugment, normalising, erasing.
Transforms training_transforms(const Making& m, const PixelStatistics& pixels) {
  const AugmentOptions& a = m.options.images.augment;
  Transforms transforms;
  add_crop(transforms, m, Split::Train);
  ImageOptions image = converted(m, pixels);
  const double across = flip_probability(m.entry, m.options), down = m.options.augment ? a.vflip : 0;
  image.flip = across == 0.5 && down == 0;
  if (!image.flip && across + down > 0)
    transforms.push_back(std::make_shared<RandomFlip>(FlipOptions{.horizontal = across, .vertical = down}));
  if (!a.color_jitter.empty()) transforms.push_back(std::make_shared<ColorJitter>(jitter_options(a.color_jitter)));
  if (a.policy == AutoAugment::RandAugment)
    transforms.push_back(
        std::make_shared<RandAugment>(RandAugmentOptions{.operations = a.ra_operations, .magnitude = a.ra_magnitude}));
  if (m.options.augment && m.options.images.size == 0) image.crop_padding = m.image[1] / 8;
  image.cutout = a.cutout;
  transforms.push_back(std::make_shared<ImageTransform>(image));
  add_resize(transforms, m);
  if (a.random_erase > 0)
    transforms.push_back(
        std::make_shared<RandomErasing>(RandomErasingOptions{.probability = a.random_erase, .noise = a.erase_noise}));
  if (m.options.noise > 0)
    transforms.push_back(std::make_shared<GaussianNoise>(GaussianNoiseOptions{.stddev = m.options.noise}));
  return transforms;
}

Transforms evaluation_transforms(const Making& m, const PixelStatistics& pixels, std::int64_t classes) {
  Transforms transforms;
  add_crop(transforms, m, Split::Eval);
  transforms.push_back(std::make_shared<ImageTransform>(converted(m, pixels)));
  add_resize(transforms, m);
  if (m.options.images.mixing.any()) transforms.push_back(std::make_shared<LabelShares>(classes, m.options.floats));
  return transforms;
}

// The numbers by which pixels are normalised, and where they are from.
struct Normalising {
  PixelStatistics pixels{};
  std::string source{};
  bool later = false;  // prepare_images() measures them
};

// Reads what record_text() wrote.
template <class Read>
auto read_record(std::string_view record, const Read& read) {
  try {
    return read(nlohmann::json::parse(record).at("images"));
  } catch (const nlohmann::json::exception& error) {
    fail("data", "the checkpoint's record of its data cannot be used: {}; expected that of a run on images",
         error.what());
  }
}

PixelStatistics recorded_pixels(std::string_view record) {
  return read_record(record, [](const nlohmann::json& images) {
    return PixelStatistics{.mean = images.at("mean").get<std::vector<float>>(),
                           .stddev = images.at("std").get<std::vector<float>>()};
  });
}

Normalising normalising(const RunData& data, const DatasetEntry& entry, const DatasetOptions& o,
                        std::int64_t channels) {
  const ImageSetOptions& images = o.images;
  if (o.purpose != Purpose::Train && o.record != nullptr)
    return {.pixels = recorded_pixels(*o.record), .source = "those of the checkpoint"};
  if (!o.mean.empty()) {
    for (const auto& [option, numbers] : {std::pair{"mean", &o.mean}, {"std", &o.stddev}}) {
      const auto count = static_cast<std::int64_t>(numbers->size());
      check(count == 1 || count == channels, kImageSetsSite,
            "--{} has {} numbers, expected 1 or {}, as images have channels", option, count, channels);
    }
    return {.pixels = {.mean = {o.mean.begin(), o.mean.end()}, .stddev = {o.stddev.begin(), o.stddev.end()}},
            .source = "given"};
  }
  const bool automatic = images.source == PixelSource::Auto;
  if (automatic && !entry.pixels.mean.empty())
    return {.pixels = {.mean = entry.pixels.mean, .stddev = entry.pixels.stddev},
            .source = formatted("those of {}", entry.name)};
  if (images.source == PixelSource::ImageNet || (automatic && entry.kind == DatasetKind::Encoded && channels == 3)) {
    check(channels == 3, kImageSetsSite, "--mean-std imagenet with images of {} channels, expected 3", channels);
    return {.pixels = {.mean = {0.485F, 0.456F, 0.406F}, .stddev = {0.229F, 0.224F, 0.225F}}, .source = "ImageNet's"};
  }
  if (entry.kind == DatasetKind::Encoded) return {.source = "measured", .later = true};
  return {.pixels = pixel_statistics(*data.train), .source = "measured"};
}

std::string changes_text(const Making& m) {
  if (m.options.purpose != Purpose::Train) return "no random changes";
  const AugmentOptions& a = m.options.images.augment;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (m.options.augment && m.options.images.size > 0)
    add(formatted("crops of {:g} to {:g} of the area", a.crop_scale[0], a.crop_scale[1]));
  if (m.options.augment && m.options.images.size == 0)
    add(formatted("crops after padding by {} pixels", m.image[1] / 8));
  if (flip_probability(m.entry, m.options) > 0 || (m.options.augment && a.vflip > 0)) add("flips");
  if (!a.color_jitter.empty()) add(formatted("colour jitter {}", joined(a.color_jitter, " ")));
  if (a.policy == AutoAugment::RandAugment)
    add(formatted("RandAugment of {} operations at magnitude {}", a.ra_operations, a.ra_magnitude));
  if (a.cutout > 0) add(formatted("cutout of {} pixels", a.cutout));
  if (a.random_erase > 0) add(formatted("erasing of {:g}", a.random_erase));
  if (m.options.noise > 0) add(formatted("noise of {:g}", m.options.noise));
  const MixingOptions& mixing = m.options.images.mixing;
  if (mixing.mixup_alpha > 0) add(formatted("mixup {:g}", mixing.mixup_alpha));
  if (mixing.cutmix_alpha > 0) add(formatted("CutMix {:g}", mixing.cutmix_alpha));
  return text.empty() ? "no random changes" : text;
}

// The record that a checkpoint keeps: a prediction makes the evaluation's transforms of it.
std::string record_text(const RunData& data, const Making& m) {
  const ImageSetOptions& images = m.options.images;
  const Shape model = data.image_shape();
  nlohmann::json record{{"channels", model[0]},
                        {"height", model[1]},
                        {"width", model[2]},
                        {"size", images.size},
                        {"eval_resize", images.size > 0 ? images.eval_side() : 0},
                        {"resize", m.options.resize},
                        {"full_decode", images.full_decode},
                        {"mean", data.images.pixels.mean},
                        {"std", data.images.pixels.stddev},
                        {"classes", data.classes()}};
  if (!data.labels.names.empty()) record["class_names"] = data.labels.names;
  return nlohmann::json{{"images", std::move(record)}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void set_images(RunData& data, const Making& m, const Normalising& by) {
  data.images.pixels = per_channel(by.pixels, m.image[0]);
  data.train_transforms = training_transforms(m, data.images.pixels);
  data.eval_transforms = evaluation_transforms(m, data.images.pixels, data.classes());
  data.prediction.record = record_text(data, m);
  if (m.entry.takes_images)
    data.notes = formatted("images {} with {}; normalised by mean {} and deviation {}, {}", data.image_shape().str(),
                           changes_text(m), joined(data.images.pixels.mean, " "),
                           joined(data.images.pixels.stddev, " "), by.source);
}

}  // namespace

std::vector<std::string> recorded_classes(std::string_view record) {
  return read_record(record, [](const nlohmann::json& images) {
    if (images.contains("class_names")) return images.at("class_names").get<std::vector<std::string>>();
    std::vector<std::string> numbers;
    for (std::int64_t c = 0; c < images.at("classes").get<std::int64_t>(); ++c) numbers.push_back(formatted("{}", c));
    return numbers;
  });
}

DecodeOptions decode_options(const DatasetOptions& o, Split split, const ImageFiles& training) {
  DecodeOptions decode{.channels = static_cast<int>(o.images.channels), .reduce = !o.images.full_decode};
  if (o.images.size > 0) {
    decode.crop = crop_options(o, split);
    return decode;
  }
  for (std::int64_t i = 0;; ++i) {
    try {
      const ImageFile file = training.read(i);
      const auto image = open_image(file.bytes, training.place(i), decode.limits);
      decode.crop = {.crop = Crop::Exact, .height = image->height(), .width = image->width()};
      return decode;
    } catch (const Error&) {
      if (o.samples.unreadable == Unreadable::Stop || i + 1 >= std::min(kMostTries, training.size())) throw;
    }
  }
}

void complete_images(RunData& data, const DatasetEntry& entry, const DatasetOptions& o) {
  const Field* const image = image_of(data);
  if (image == nullptr) {
    check(!o.augment && o.resize == 0 && o.images.size == 0, kImageSetsSite,
          "--augment, --image-size and --resize are for images, and {} has none", entry.name);
    return;
  }
  if (const MixingOptions& mixing = o.images.mixing; mixing.any()) {
    data.epoch.mix = std::make_shared<BatchMix>(MixOptions{.classes = data.classes(),
                                                           .mixup_alpha = mixing.mixup_alpha,
                                                           .cutmix_alpha = mixing.cutmix_alpha,
                                                           .probability = mixing.probability,
                                                           .cutmix_probability = mixing.switch_probability});
  }
  set_images(data, {.entry = entry, .options = o, .image = image->shape, .cropped = data.images.cropped},
             normalising(data, entry, o, image->shape[0]));
}

void prepare_images(RunData& data, const DatasetEntry& entry, const DatasetOptions& o, const comm::Communicator* comm) {
  const Field* const image = entry.kind == DatasetKind::Encoded ? image_of(data) : nullptr;
  if (image == nullptr) return;
  Normalising by = normalising(data, entry, o, image->shape[0]);
  if (!by.later) return;
  log()->info("measuring mean and deviation of {} training images", data.train->size());
  const std::vector<NormalisationOptions> wanted{{.field = "image", .scaling = Scaling::MeanStd, .channel_axis = 0}};
  const Normalisation measured =
      comm == nullptr ? measure_normalisation(*data.train, wanted) : measure_normalisation(*data.train, wanted, *comm);
  const FieldNormalisation& numbers = measured.fields().front();
  for (std::size_t c = 0; c < numbers.shift.size(); ++c) {
    by.pixels.mean.push_back(static_cast<float>(numbers.shift[c] / 255));
    by.pixels.stddev.push_back(static_cast<float>(numbers.scale[c] / 255));
  }
  set_images(data, {.entry = entry, .options = o, .image = image->shape, .cropped = data.images.cropped}, by);
}

}  // namespace lockstep::data
