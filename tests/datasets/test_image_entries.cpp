// The entries "folder" and "records": options become decoding, transforms, mixing and a record; caches, statistics,
// labels and mistakes.
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "data/datasets/check_images.h"
#include "tests/datasets/image_sets.h"

namespace lockstep::datasets {
namespace {

using namespace data;

// train and val with three classes and JPEGs and PNGs of many sizes; class `cat` has more files than the others.
void write_images(const std::filesystem::path& root) {
  const std::vector<std::string> classes{"ant", "bee", "cat"};
  for (std::int64_t i = 0; i < 20; ++i) {
    const TestImage image = smooth_image(60 + 17 * i, 200 - 5 * i, 3, static_cast<std::uint64_t>(i));
    const std::string& name = classes[static_cast<std::size_t>(i < 6 ? i % 2 : 2)];
    const bool png = i % 4 == 3;
    const auto bytes = png ? encode_png(image) : encode_jpeg(image);
    put_file(root / "train" / name / formatted("{:02}.{}", i, png ? "png" : "JPG"), bytes);
    if (i % 2 == 0) put_file(root / "val" / name / formatted("{:02}.jpg", i), encode_jpeg(image));
    if (i == 1) put_file(root / "val" / "bee" / "01.png", encode_png(image));
  }
}

TEST(ImageEntries, FoldersAndRecordsGiveTheSameBatchesAndRecord) {
  const TempDir dir;
  write_images(dir.path());
  pack_both(dir.path(), dir / "packed");
  DatasetOptions options = folder_options(dir.path(), 48);
  options.images.augment.color_jitter = {0.2};
  options.images.augment.policy = AutoAugment::RandAugment;
  options.images.augment.random_erase = 0.5;
  options.images.mixing = {.mixup_alpha = 0.3, .cutmix_alpha = 1};
  const RunData folder = open_images(options);
  EXPECT_EQ(folder.classes(), 3);
  EXPECT_EQ(folder.labels.names, (std::vector<std::string>{"ant", "bee", "cat"}));
  EXPECT_EQ(folder.image_shape(), (Shape{3, 48, 48}));
  EXPECT_EQ(folder.train->size(), 20);
  EXPECT_EQ(folder.eval->size(), 11);
  options.name = "records";
  options.dir = dir / "packed";
  const RunData records = open_images(options);
  EXPECT_EQ(training_batches(folder), training_batches(records, 2, 2));
  EXPECT_EQ(folder.prediction.record, records.prediction.record);
  const nlohmann::json record = nlohmann::json::parse(folder.prediction.record).at("images");
  EXPECT_EQ(record.at("height"), 48);
  EXPECT_EQ(record.at("size"), 48);
  EXPECT_EQ(record.at("eval_resize"), 54);
  EXPECT_EQ(record.at("class_names"), nlohmann::json({"ant", "bee", "cat"}));
  EXPECT_NEAR(record.at("mean").at(0).get<double>(), 0.485, 1e-6);
  EXPECT_NE(
      folder.notes.find("crops of 0.08 to 1 of the area, flips, colour jitter 0.2, RandAugment of 2 operations at "
                        "magnitude 9, erasing of 0.5, mixup 0.3, CutMix 1; normalised by mean 0.485 0.456 0.406"),
      std::string::npos)
      << folder.notes;
}

TEST(ImageEntries, EachOptionChangesTrainingAndNotEvaluation) {
  const TempDir dir;
  write_images(dir.path());
  const DatasetOptions plain = folder_options(dir.path(), 40);
  const auto expected = training_batches(open_images(plain), 1);
  const auto evaluated = [](const RunData& data) {
    Loader loader(*data.eval, DistributedSampler({.size = data.eval->size(), .global_batch = 11, .shuffle = false}),
                  data.eval_transforms, {.threads = 0});
    const Batch batch = loader.next();
    const auto pixels = batch.at("image").data<float>();
    return std::vector<float>(pixels.begin(), pixels.end());
  };
  const auto evaluation = evaluated(open_images(plain));
  std::vector<DatasetOptions> changed(12, plain);
  changed[0].images.augment.crop_scale = {0.5, 0.5};
  changed[1].images.augment.crop_ratio = {1, 1};
  changed[2].images.augment.hflip = 1;
  changed[3].images.augment.vflip = 0.5;
  changed[4].images.augment.color_jitter = {0, 0, 0.5, 0.1};
  changed[5].images.augment.policy = AutoAugment::RandAugment;
  changed[6].images.augment.random_erase = 1;
  changed[7].images.augment.cutout = 9;
  changed[8].noise = 0.1;
  changed[9].images.mixing.mixup_alpha = 0.2;
  changed[10].images.mixing.cutmix_alpha = 1;
  changed[11].augment = false;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const RunData data = open_images(changed[i]);
    EXPECT_NE(training_batches(data, 1), expected) << i;
    EXPECT_EQ(evaluated(data), evaluation) << i;
  }
}

TEST(ImageEntries, CachedImagesAreThoseOfAFullDecoding) {
  const TempDir dir;
  write_images(dir.path());
  DatasetOptions options = folder_options(dir.path(), 32);
  options.images.full_decode = true;
  const auto expected = training_batches(open_images(options));
  for (const std::int64_t channels : {3, 1}) {
    options.images.channels = channels;
    options.samples.cache_mb = 0;
    const auto decoded = channels == 3 ? expected : training_batches(open_images(options));
    for (const std::int64_t mib : {1, 100}) {  // 1 MiB holds a part of them
      options.samples.cache_mb = mib;
      const RunData data = open_images(options);
      EXPECT_EQ(training_batches(data), decoded) << mib;
      const auto* images = dynamic_cast<const DecodedImages*>(data.train.get());
      ASSERT_NE(images, nullptr);
      ASSERT_NE(images->cache(), nullptr);
      EXPECT_GT(images->cache()->bytes(), 0U);
      EXPECT_LE(images->cache()->bytes(), static_cast<std::size_t>(mib) << 20);
    }
  }
}

TEST(ImageEntries, StatisticsAreGivenKnownOrMeasured) {
  const TempDir dir;
  for (const char* split : {"train", "val"}) {
    for (int i = 0; i < 4; ++i) {
      TestImage image{.height = 6, .width = 6, .channels = 3};
      for (int p = 0; p < 36; ++p) {
        for (int c = 0; c < 3; ++c) image.values.push_back(static_cast<std::uint8_t>(50 * c + (p % 2 == 0 ? 10 : 30)));
      }
      put_file(dir / split / formatted("c{}", i % 2) / formatted("{}.png", i), encode_png(image));
    }
  }
  DatasetOptions options = folder_options(dir.path(), 0);
  options.images.source = PixelSource::Measured;
  const RunData measured = open_images(options);
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(measured.images.pixels.mean[static_cast<std::size_t>(c)], (20.0 + 50 * c) / 255, 1e-6);
    EXPECT_NEAR(measured.images.pixels.stddev[static_cast<std::size_t>(c)], 10.0 / 255, 1e-6);
  }
  EXPECT_NE(measured.notes.find(", measured"), std::string::npos) << measured.notes;
  options.images.source = PixelSource::Auto;
  EXPECT_NE(open_images(options).notes.find("0.225, ImageNet's"), std::string::npos);
  options.images.channels = 1;
  EXPECT_EQ(open_images(options).images.pixels.mean.size(), 1U) << "measured";
  options.images.source = PixelSource::ImageNet;
  expect_error([&] { open_images(options); }, {"--mean-std imagenet", "1 channels"});
  options.images.channels = 3;
  options.images.source = PixelSource::Auto;
  options.mean = {0.5};
  options.stddev = {0.25};
  EXPECT_EQ(open_images(options).images.pixels.mean, (std::vector<float>{0.5F, 0.5F, 0.5F}));
  options.mean = options.stddev = {0.5, 0.5};
  expect_error([&] { open_images(options); }, {"--mean has 2 numbers", "1 or 3"});
}

TEST(ImageEntries, BalancedClassesNeedNoDecoding) {
  const TempDir dir;
  write_images(dir.path());
  pack_both(dir.path(), dir / "packed");
  DatasetOptions options = folder_options(dir.path(), 32);
  options.samples.balanced = true;
  for (const auto& [name, at] : {std::pair{"folder", dir.path()}, {"records", dir / "packed"}}) {
    options.name = name;
    options.dir = at;
    const RunData data = open_images(options);
    ASSERT_NE(data.epoch.order, nullptr);
    std::vector<int> counts(3);
    for (const std::int64_t i : data.epoch.order->indices(1, 0))
      ++counts[static_cast<std::size_t>(data.train->label(i))];
    for (const int count : counts) EXPECT_NEAR(count, 20.0 / 3, 1.01) << name;
  }
}

TEST(ImageEntries, UnreadableFilesAreNamedOrReplaced) {
  const TempDir dir;
  write_images(dir.path());
  put_file(dir / "train" / "ant" / "00.JPG", {std::byte{1}, std::byte{2}});
  DatasetOptions options = folder_options(dir.path(), 32);
  expect_error([&] { training_batches(open_images(options), 1); }, {"ant/00.JPG"});
  options.samples.unreadable = Unreadable::Replace;
  const RunData data = open_images(options);
  training_batches(data, 2);
  EXPECT_EQ(data.replaced(), 2);
}

TEST(ImageEntries, DamagedFilesAreFoundBeforeTraining) {
  const TempDir dir;
  write_images(dir.path());
  const auto bytes_of = [](const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto bytes = std::as_bytes(std::span(text));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const std::filesystem::path jpeg = dir / "train" / "ant" / "00.JPG", png = dir / "val" / "bee" / "01.png";
  EXPECT_EQ(image_damage(jpeg), "");
  EXPECT_EQ(image_damage(png), "");
  std::vector<std::byte> longer = bytes_of(jpeg), shorter = longer;
  longer.resize(longer.size() + 1000);  // what some cameras append is no damage
  put_file(jpeg, longer);
  EXPECT_EQ(image_damage(jpeg), "");
  shorter.resize(shorter.size() / 2);
  put_file(jpeg, shorter);
  EXPECT_NE(image_damage(jpeg).find("ant/00.JPG: truncated"), std::string::npos) << image_damage(jpeg);
  put_file(png, {});
  DatasetOptions options = folder_options(dir.path(), 32);
  expect_error([&] { open_images(options); },
               {"2 of 31 image files are damaged: ", "ant/00.JPG: truncated", "bee/01.png", "--unreadable replace"});
  options.samples.unreadable = Unreadable::Replace;
  EXPECT_EQ(open_images(options).train->size(), 20);
}

TEST(ImageEntries, MistakesAreNamed) {
  const TempDir dir;
  DatasetOptions options = folder_options(dir / "absent", 32);
  expect_error([&] { open_images(options); }, {"absent", "no such folder"});
  options.dir = dir.path();
  expect_error([&] { open_images(options); }, {"no folder train", "train/CLASS/FILE"});
  std::filesystem::create_directories(dir / "train");
  std::filesystem::create_directories(dir / "val");
  expect_error([&] { open_images(options); }, {"no folders, expected one for each class"});
  write_images(dir.path());
  options.images.size = 0;
  expect_error([&] { training_batches(open_images(options)); }, {"columns", "expected 60 x 200"});
  std::filesystem::remove_all(dir / "val" / "bee");
  expect_error([&] { open_images(options); }, {"class 'bee'", "not in"});
  options.name = "records";
  expect_error([&] { open_images(options); }, {"no train.index", "lockstep pack"});
  options.dir.clear();
  expect_error([&] { open_images(options); }, {"--data-dir is missing"});

  const auto refused = [&](const std::function<void(DatasetOptions&)>& change, const std::vector<std::string>& parts) {
    DatasetOptions wrong{.name = "digits", .augment = true};
    change(wrong);
    expect_error([&] { open_images(wrong); }, parts);
  };
  refused([](auto& o) { o.images.size = o.resize = 32; }, {"--image-size 32", "--resize 32"});
  refused([](auto& o) { o.images.eval_resize = 40; }, {"--val-resize-size is 40 without --image-size"});
  refused([](auto& o) { o.images = {.size = 32, .eval_resize = 30}; }, {"--val-resize-size is 30", "32"});
  refused([](auto& o) { o.images.channels = 1; }, {"--channels", "digits"});
  refused([](auto& o) { o.mean = {0.5}; }, {"--mean is given without --std"});
  refused([](auto& o) { o.images.augment.crop_scale = {0.5}; }, {"--crop-scale is 0.5"});
  refused([](auto& o) { o.images.augment.color_jitter = {0.1, 0.1}; }, {"--color-jitter has 2"});
  refused(
      [](auto& o) {
        o.images.augment.crop_scale = {0.2, 1};
      },
      {"--crop-scale or --crop-ratio without --image-size"});
  refused([](auto& o) { o.images.augment.ra_magnitude = 3; }, {"--ra-magnitude without --auto-augment ra"});
  refused([](auto& o) { o.images.mixing.probability = 0.5; }, {"--mixup-prob is 0.5 without"});
  refused([](auto& o) { o.images.mixing = {.mixup_alpha = 1, .switch_probability = 0.1}; },
          {"--mixup-switch-prob is 0.1"});
  refused([](auto& o) { o.images.augment.erase_noise = true; }, {"--erase-noise without --random-erase"});
  refused(
      [](auto& o) {
        o.augment = false;
        o.images.augment.vflip = 0.5;
      },
      {"--hflip or --vflip without --augment"});
}

}  // namespace
}  // namespace lockstep::datasets
