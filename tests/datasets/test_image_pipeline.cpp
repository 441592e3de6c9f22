// The pipeline that docs/data.md shows: JPEGs of different sizes in folders, to normalised batches.
#include <cmath>
#include <fstream>

#include "data/datasets/image_folder.h"
#include "lockstep/data/augment/color_jitter.h"
#include "lockstep/data/augment/random_erasing.h"
#include "lockstep/data/loader.h"
#include "tests/data/image_files.h"
#include "tests/data/support.h"

namespace lockstep {
namespace {

TEST(ImagePipeline, FoldersOfJpegsBecomeNormalisedBatches) {
  const data::TempDir dir;
  for (std::int64_t i = 0; i < 12; ++i) {
    for (const char* split : {"train", "val"}) {
      const auto path = dir.path() / split / formatted("class{}", i % 3) / formatted("{}.jpg", i);
      std::filesystem::create_directories(path.parent_path());
      const auto bytes = data::encode_jpeg(data::smooth_image(180 + 31 * i, 300 - 11 * i, 3, 1));
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
  }
  const std::filesystem::path root = dir.path();
  const data::DecodeOptions training{.crop = {.crop = data::Crop::Random, .height = 224, .width = 224}};
  const auto images = datasets::open_image_folder(root, data::Split::Train, training);
  const data::Transforms transforms{
      std::make_shared<data::ColorJitter>(data::ColorJitterOptions{.brightness = 0.4, .contrast = 0.4}),
      std::make_shared<data::ImageTransform>(
          data::ImageOptions{.flip = true, .mean = {0.485F, 0.456F, 0.406F}, .stddev = {0.229F, 0.224F, 0.225F}}),
      std::make_shared<data::RandomErasing>(data::RandomErasingOptions{.probability = 0.25})};
  const auto epoch = [&](int threads) {
    data::Loader loader(*images, data::DistributedSampler({.size = images->size(), .global_batch = 5, .seed = 2}),
                        transforms, {.threads = threads});
    std::vector<float> values;
    for (data::Batch& batch : loader.epoch()) {
      EXPECT_EQ(batch.at("image").shape(), (Shape{batch.samples(), 3, 224, 224}));
      const auto pixels = batch.at("image").data<float>();
      values.insert(values.end(), pixels.begin(), pixels.end());
    }
    return values;
  };
  const std::vector<float> values = epoch(0);
  EXPECT_EQ(values.size(), std::size_t{12 * 3 * 224 * 224});
  double sum = 0;
  for (const float v : values) sum += std::abs(v);
  EXPECT_GT(sum / static_cast<double>(values.size()), 0.1);
  EXPECT_LT(sum / static_cast<double>(values.size()), 3);
  EXPECT_EQ(epoch(2), values) << "threads";
}

}  // namespace
}  // namespace lockstep
