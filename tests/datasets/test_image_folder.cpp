// Image folders: classes, order and splits as torchvision has them; and one data set as folders, records and CIFAR's
// binary files gives the same batches.
#include <algorithm>

#include "data/datasets/cifar.h"
#include "data/datasets/image_folder.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/records/record_reader.h"
#include "lockstep/data/records/record_writer.h"
#include "tests/data/image_files.h"
#include "tests/data/support.h"

namespace lockstep::datasets {
namespace {

using namespace data;

void put(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

const std::vector<std::byte> kByte(1, std::byte{1});

TEST(ImageFolder, ClassesAndFilesAreSortedByName) {
  const TempDir dir;
  for (const char* name : {"zebra/2.png", "zebra/10.PNG", "Cat/b.jpg", "Cat/a.JPEG", "Cat/notes.txt", "ant/x/1.jpg",
                           "ant/z.jpg", "ant/x.d/0.jpg", "ant/y.jpeg"})
    put(dir / name, kByte);
  put(dir / "readme.jpg", kByte);  // no class
  const ImageList list = list_image_folder(dir.path());
  EXPECT_EQ(list.classes, (std::vector<std::string>{"Cat", "ant", "zebra"}));
  EXPECT_EQ(list.files, (std::vector<std::string>{"Cat/a.JPEG", "Cat/b.jpg", "ant/y.jpeg", "ant/z.jpg", "ant/x/1.jpg",
                                                  "ant/x.d/0.jpg", "zebra/10.PNG", "zebra/2.png"}));
  EXPECT_EQ(list.labels, (std::vector<std::int32_t>{0, 0, 1, 1, 1, 1, 2, 2}));
  const ImageFolder folder(list);
  EXPECT_EQ(folder.size(), 8);
  EXPECT_EQ(folder.read(6).bytes, kByte);
  EXPECT_EQ(folder.read(6).label, 2);
  EXPECT_EQ(folder.place(0), (dir / "Cat/a.JPEG").string());
  std::filesystem::remove(dir / "Cat/a.JPEG");
  expect_error([&] { folder.read(0); }, {"Cat/a.JPEG", "No such file"});
}

TEST(ImageFolder, SymbolicLinksAreFollowedButNotInACircle) {
  const TempDir dir;
  put(dir / "far/real/1.png", kByte);
  std::filesystem::create_directories(dir / "root");
  std::filesystem::create_directory_symlink(dir / "far/real", dir / "root/linked");
  EXPECT_EQ(list_image_folder(dir / "root").files, std::vector<std::string>{"linked/1.png"});
  std::filesystem::create_directory_symlink(dir / "root/linked", dir / "far/real/again");
  expect_error([&] { list_image_folder(dir / "root"); }, {"linked/again", "circle"});
}

TEST(ImageFolder, SplitsAreFolders) {
  const TempDir dir;
  expect_error([&] { split_folder(dir / "absent", Split::Train); }, {"absent", "no such folder"});
  put(dir / "a/1.png", kByte);
  EXPECT_TRUE(split_folder(dir.path(), Split::Train).empty()) << "its folders are classes";
  put(dir / "train/a/1.png", kByte);
  EXPECT_EQ(split_folder(dir.path(), Split::Train), dir / "train");
  expect_error([&] { split_folder(dir.path(), Split::Eval); }, {"neither val nor test"});
  put(dir / "test/a/1.png", kByte);
  EXPECT_EQ(split_folder(dir.path(), Split::Eval), dir / "test");
  put(dir / "val/a/1.png", kByte);
  EXPECT_EQ(split_folder(dir.path(), Split::Eval), dir / "val");
}

TEST(ImageFolder, WhatIsMissingIsNamed) {
  const TempDir dir;
  expect_error([&] { list_image_folder(dir / "absent"); }, {"absent", "No such file"});
  expect_error([&] { list_image_folder(dir.path()); }, {dir.path().string(), "one for each class"});
  put(dir / "train/a/1.png", kByte);
  put(dir / "train/b/notes.txt", kByte);
  expect_error([&] { list_image_folder(dir / "train"); }, {"train/b", "expected images of this class"});
  put(dir / "train/b/1.png", kByte);
  put(dir / "val/a/1.png", kByte);
  put(dir / "val/c/1.png", kByte);
  const DecodeOptions options{.crop = {.crop = Crop::Exact, .height = 4, .width = 4}};
  expect_error([&] { open_image_folder(dir.path(), Split::Train, options); }, {"class 'b'", "train", "val"});
  std::filesystem::remove_all(dir / "train/b");
  expect_error([&] { open_image_folder(dir.path(), Split::Eval, options); }, {"class 'c'"});
  std::filesystem::remove_all(dir / "val/c");
  const auto set = open_image_folder(dir.path(), Split::Train, options);
  EXPECT_EQ(set->classes(), 1);
  expect_error([&] { sample_of(*set, 0); }, {"train/a/1.png", "begins with the bytes 01"});
  expect_error([&] { open_image_folder(dir / "train", Split::Train, options); }, {"no folder train"});
}

// All batches of two epochs, with crops and flips.
std::vector<Bytes> batches(const Dataset& set, std::int64_t ranks) {
  std::vector<Bytes> all;
  const auto transform = std::make_shared<ImageTransform>(
      ImageOptions{.crop_padding = 4, .flip = true, .mean = {0.5F, 0.4F, 0.3F}, .stddev = {0.2F, 0.2F, 0.2F}});
  std::vector<std::unique_ptr<Loader>> loaders;
  for (std::int64_t r = 0; r < ranks; ++r)
    loaders.push_back(std::make_unique<Loader>(
        set,
        DistributedSampler(
            {.size = set.size(), .global_batch = 16, .shards = ranks, .my_shards = {r, r + 1}, .seed = 3}),
        Transforms{transform}));
  const std::int64_t steps = 2 * loaders.front()->sampler().steps_per_epoch();
  for (std::int64_t step = 0; step < steps; ++step) {
    Bytes images, labels;
    for (auto& loader : loaders) {
      Batch batch = loader->next();
      const auto append = [](Bytes& bytes, const Tensor& tensor) {
        const auto* begin = reinterpret_cast<const std::uint8_t*>(tensor.raw());
        bytes.insert(bytes.end(), begin, begin + tensor.bytes());
      };
      if (batch.samples() == 0) continue;
      append(images, batch.at("image"));
      append(labels, batch.at("label"));
    }
    all.push_back(std::move(images));
    all.push_back(std::move(labels));
  }
  return all;
}

// Writes a set of (3, 32, 32) images as PNG files; the files of a class keep the order of the samples. Returns the
// samples in the folder's order.
std::vector<std::int64_t> write_folder(const ImageDataset& set, const std::filesystem::path& root, std::int64_t count) {
  std::vector<std::pair<std::int32_t, std::int64_t>> order;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto sample = sample_of(set, i);
    const auto label = value_of<std::int32_t>(sample[1]);
    TestImage image{.height = 32, .width = 32, .channels = 3};
    for (std::size_t p = 0; p < 1024; ++p) {
      for (std::size_t c = 0; c < 3; ++c) image.values.push_back(sample[0][c * 1024 + p]);
    }
    put(root / formatted("class{}", label) / formatted("{:06}.png", i), encode_png(image));
    order.emplace_back(label, i);
  }
  std::ranges::sort(order);
  std::vector<std::int64_t> indices;
  for (const auto& [label, index] : order) indices.push_back(index);
  return indices;
}

void expect_same_batches(const CifarFiles& cifar, std::int64_t count, const TempDir& dir) {
  auto binary = read_cifar(cifar);
  const auto indices = write_folder(*binary, dir / "images", count);
  const DecodeOptions options{.crop = {.crop = Crop::Exact, .height = 32, .width = 32}};
  ImageFolder files(list_image_folder(dir / "images"));
  ASSERT_EQ(files.size(), count);
  pack_images(files, {.folder = dir.path(), .name = "files", .file_bytes = 50000});
  const DecodedImages folder(std::make_unique<ImageFolder>(std::move(files)), options);
  const SubsetDataset reordered(std::move(binary), indices);
  pack_dataset(reordered, {.folder = dir.path(), .name = "pixels", .file_bytes = 50000});
  const auto expected = batches(reordered, 1);
  EXPECT_EQ(batches(folder, 1), expected) << "folders";
  EXPECT_EQ(batches(*open_records(dir / "files.index", options), 3), expected) << "records of files, three ranks";
  EXPECT_EQ(batches(*open_records(dir / "pixels.index", options), 2), expected) << "records of pixels, two ranks";
}

TEST(ImageFolder, ImagesWithoutLabelsAreThoseOfAllFolders) {
  const TempDir dir;
  expect_error([&] { list_unlabelled_images(dir.path(), {"a"}); },
               {dir.path().string(), "no .jpg, .jpeg or .png file"});
  for (const char* name : {"new/z.png", "new/b/y.JPG", "new/b/deeper/x.jpeg", "new/a.txt", "new/a/w.png"})
    put(dir / name, {std::byte{1}});
  const ImageList list = list_unlabelled_images(dir / "new", {"ant", "bee"});
  EXPECT_EQ(list.files, (std::vector<std::string>{"z.png", "a/w.png", "b/y.JPG", "b/deeper/x.jpeg"}));
  EXPECT_EQ(list.labels, std::vector<std::int32_t>(4, 0));
  EXPECT_EQ(ImageFolder(list).class_names(), (std::vector<std::string>{"ant", "bee"}));
}

TEST(ImageFolder, CifarAsFoldersRecordsAndBinaryGivesTheSameBatches) {
  const TempDir dir;
  Bytes records;
  RandomStream random(6, 6);
  for (int i = 0; i < 120; ++i) {
    records.push_back(static_cast<std::uint8_t>(random.below(10)));
    for (int p = 0; p < 3072; ++p) records.push_back(static_cast<std::uint8_t>(random.below(256)));
  }
  expect_same_batches({.files = {dir.write("batch.bin", records)}, .records = 120}, 120, dir);
}

TEST(ImageFolder, RealCifarAsFoldersRecordsAndBinaryGivesTheSameBatches) {
  const auto data = real_data();
  if (!data || !std::filesystem::exists(*data / "cifar-10-batches-bin"))
    GTEST_SKIP() << "no cifar-10-batches-bin/ in LOCKSTEP_TEST_DATA";
  const TempDir dir;
  expect_same_batches({.files = {*data / "cifar-10-batches-bin" / "test_batch.bin"}}, 2000, dir);
}

}  // namespace
}  // namespace lockstep::datasets
