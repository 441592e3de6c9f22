#include "data/datasets/catalogue.h"
#include "data/datasets/cifar.h"
#include "data/datasets/mnist.h"
#include "tests/data/support.h"

namespace lockstep::datasets {
namespace {

using namespace data;

void put_be32(Bytes& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

constexpr std::int64_t kCount = 5, kRows = 3, kColumns = 4;

Bytes idx_images() {
  Bytes bytes;
  for (std::uint32_t v : {0x803u, 5u, 3u, 4u}) put_be32(bytes, v);
  for (int i = 0; i < kCount * kRows * kColumns; ++i) bytes.push_back(static_cast<std::uint8_t>(3 * i));
  return bytes;
}
Bytes idx_labels() {
  Bytes bytes;
  for (std::uint32_t v : {0x801u, 5u}) put_be32(bytes, v);
  bytes.insert(bytes.end(), {7, 0, 9, 3, 1});
  return bytes;
}
void put_at(Bytes& bytes, std::size_t offset, std::uint32_t value) {
  Bytes word;
  put_be32(word, value);
  std::ranges::copy(word, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

// Reads the two files, plain and compressed: both must fail, and name `parts`.
void expect_idx_error(const Bytes& images, const Bytes& labels, const std::vector<std::string>& parts) {
  const TempDir dir;
  const auto plain_images = dir.write("images", images), plain_labels = dir.write("labels", labels);
  expect_error([&] { read_idx({.images = plain_images, .labels = plain_labels}); }, parts);
  const auto gz_images = dir.write("images.gz", gzip(images)), gz_labels = dir.write("labels.gz", gzip(labels));
  expect_error([&] { read_idx({.images = gz_images, .labels = gz_labels}); }, parts);
}

TEST(Idx, ReadsPlainAndCompressedFiles) {
  const TempDir dir;
  for (const bool compressed : {false, true}) {
    const std::string ending = compressed ? ".gz" : "";
    const auto set = read_idx({.images = dir.write("images" + ending, compressed ? gzip(idx_images()) : idx_images()),
                               .labels = dir.write("labels" + ending, compressed ? gzip(idx_labels()) : idx_labels())});
    ASSERT_EQ(set->size(), kCount);
    EXPECT_EQ(set->fields()[0], (Field{"image", {1, kRows, kColumns}, DType::U8}));
    EXPECT_EQ(set->fields()[1], (Field{"label", Shape{}, DType::I32}));
    EXPECT_EQ(set->classes(), 10);
    const auto sample = sample_of(*set, 2);
    EXPECT_EQ(value_of<std::int32_t>(sample[1]), 9);
    for (int i = 0; i < 12; ++i) EXPECT_EQ(sample[0][static_cast<std::size_t>(i)], 3 * (24 + i));
    expect_error([&] { sample_of(*set, kCount); }, {"sample 5", "expected 0 to 4"});
    expect_error([&] { sample_of(*set, -1); }, {"sample -1"});
  }
}

TEST(Idx, FindsTheFilesOfASplitInUsualFolders) {
  for (const std::string folder : {".", "mnist", "MNIST/raw"}) {
    const TempDir dir;
    std::filesystem::create_directories(dir / folder);
    dir.write(folder + "/t10k-images-idx3-ubyte.gz", gzip(idx_images()));
    dir.write(folder + "/t10k-labels-idx1-ubyte", idx_labels());
    EXPECT_EQ(read_mnist(dir.path(), Split::Eval)->size(), kCount);
    expect_error([&] { read_mnist(dir.path(), Split::Train); },
                 {"train-images-idx3-ubyte", ".gz", dir.path().string()});
  }
}

TEST(Idx, WrongMagicNumber) {
  Bytes images = idx_images(), labels = idx_labels();
  put_at(images, 0, 0x804);
  expect_idx_error(images, labels, {"images", "0x00000804", "0x00000803", "offset 0"});
  expect_idx_error(idx_images(), idx_images(), {"labels", "0x00000803", "0x00000801"});
}

TEST(Idx, TruncatedAtEveryLength) {
  const Bytes images = idx_images(), labels = idx_labels();
  for (std::size_t n = 0; n < images.size(); n += 5) {
    expect_idx_error(Bytes(images.begin(), images.begin() + static_cast<std::ptrdiff_t>(n)), labels,
                     {"images", "truncated", "offset"});
  }
  for (std::size_t n = 0; n < labels.size(); ++n) {
    expect_idx_error(images, Bytes(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(n)),
                     {"labels", "truncated", "offset"});
  }
}

TEST(Idx, TooLong) {
  Bytes images = idx_images(), labels = idx_labels();
  images.push_back(0);
  expect_idx_error(images, labels, {"images", "too long", "offset 76"});
  labels.push_back(0);
  expect_idx_error(idx_images(), labels, {"labels", "too long", "offset 13"});
}

TEST(Idx, LabelOutOfRangeNamesTheRecord) {
  Bytes labels = idx_labels();
  labels[8 + 3] = 10;
  expect_idx_error(idx_images(), labels, {"labels", "offset 11", "record 3", "label 10", "0 to 9"});
}

TEST(Idx, CountsThatDisagree) {
  Bytes labels = idx_labels();
  put_at(labels, 4, 4);
  labels.pop_back();
  expect_idx_error(idx_images(), labels, {"4 labels", "5 images"});
}

TEST(Idx, ClaimsOfAHeaderAreNotBelieved) {
  Bytes images = idx_images(), labels = idx_labels();
  put_at(images, 8, 0xFFFFFFFF);
  put_at(images, 12, 0xFFFFFFFF);
  expect_idx_error(images, labels, {"images", "more than a file can hold"});
  images = idx_images();
  put_at(images, 4, 0xFFFFFFFF);  // 51 GB of pixels
  put_at(labels, 4, 0xFFFFFFFF);
  expect_idx_error(images, labels, {"images", "truncated"});
  images = idx_images();
  put_at(images, 8, 0);
  expect_idx_error(images, idx_labels(), {"images", "number of rows is 0"});
}

TEST(Gzip, DamageIsNamed) {
  const TempDir dir;
  const auto labels = dir.write("labels", idx_labels());
  const auto read = [&](const Bytes& bytes) {
    return read_idx({.images = dir.write("images.gz", bytes), .labels = labels});
  };
  const Bytes whole = gzip(idx_images());
  EXPECT_EQ(read(whole)->size(), kCount);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    expect_error([&] { read(cut); }, {"images.gz", "truncated"});
  }
  Bytes longer = whole;
  longer.insert(longer.end(), {1, 2, 3});
  expect_error([&] { read(longer); }, {"images.gz"});
  Bytes checksum = whole;
  checksum[checksum.size() - 6] ^= 1;
  expect_error([&] { read(checksum); }, {"images.gz", "not valid gzip"});
  expect_error([&] { read(idx_images()); }, {"images.gz", "not valid gzip"});  // not compressed at all
}

TEST(Gzip, EveryFlippedBitIsAnErrorOrHarmless) {
  const TempDir dir;
  const auto labels = dir.write("labels", idx_labels());
  const Bytes whole = gzip(idx_images());
  const auto expected = read_idx({.images = dir.write("images.gz", whole), .labels = labels})->images().pixels;
  int errors = 0;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes flipped = whole;
    flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1 << bit % 8));
    try {  // header bits such as the time stamp change nothing
      EXPECT_EQ(read_idx({.images = dir.write("images.gz", flipped), .labels = labels})->images().pixels, expected);
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, static_cast<int>(8 * (whole.size() - 10)) - 8);
}

TEST(Gzip, MembersAreJoined) {
  const TempDir dir;
  const Bytes images = idx_images();
  Bytes joined = gzip(Bytes(images.begin(), images.begin() + 20));
  const Bytes second = gzip(Bytes(images.begin() + 20, images.end()));
  joined.insert(joined.end(), second.begin(), second.end());
  const auto set = read_idx({.images = dir.write("images.gz", joined), .labels = dir.write("labels", idx_labels())});
  EXPECT_EQ(set->images().pixels, Bytes(images.begin() + 16, images.end()));
}

// `records` CIFAR records whose pixels count up from their number.
Bytes cifar_records(int records, int label_bytes, int classes) {
  Bytes bytes;
  for (int i = 0; i < records; ++i) {
    for (int k = 0; k < label_bytes - 1; ++k) bytes.push_back(200);  // coarse labels are not looked at
    bytes.push_back(static_cast<std::uint8_t>((7 * i + 2) % classes));
    for (int p = 0; p < 3072; ++p) bytes.push_back(static_cast<std::uint8_t>(i + p));
  }
  return bytes;
}

TEST(Cifar, ReadsRecordsOfOneAndTwoLabelBytes) {
  const TempDir dir;
  for (const int label_bytes : {1, 2}) {
    const int classes = label_bytes == 1 ? 10 : 100;
    const Bytes bytes = cifar_records(6, label_bytes, classes);
    const auto set = read_cifar({.files = {dir.write("a", bytes), dir.write("b", bytes)},
                                 .records = 6,
                                 .label_bytes = label_bytes,
                                 .classes = classes});
    EXPECT_EQ(set->size(), 12);
    EXPECT_EQ(set->fields()[0].shape, (Shape{3, 32, 32}));
    const auto sample = sample_of(*set, 9);  // record 3 of the second file
    EXPECT_EQ(value_of<std::int32_t>(sample[1]), 23 % classes);
    EXPECT_EQ(sample[0][0], 3);
    EXPECT_EQ(sample[0][3071], static_cast<std::uint8_t>(3 + 3071));
  }
}

TEST(Cifar, DamagedFilesAreNamed) {
  const TempDir dir;
  const auto read = [&](const Bytes& bytes) { read_cifar({.files = {dir.write("batch.bin", bytes)}, .records = 4}); };
  Bytes bytes = cifar_records(4, 1, 10);
  bytes.pop_back();
  expect_error([&] { read(bytes); }, {"batch.bin", "truncated", "12292", "12291"});
  expect_error([&] { read(cifar_records(3, 1, 10)); }, {"batch.bin", "truncated", "4 records"});
  expect_error([&] { read(cifar_records(5, 1, 10)); }, {"batch.bin", "too long", "offset 12292"});
  bytes = cifar_records(4, 1, 10);
  bytes[2 * 3073] = 10;
  expect_error([&] { read(bytes); }, {"batch.bin", "offset 6146", "record 2", "label 10", "0 to 9"});
  expect_error([&] { read_cifar10(dir.path(), Split::Train); }, {"data_batch_1.bin", dir.path().string()});
  dir.write("data_batch_1.bin", bytes);
  expect_error([&] { read_cifar10(dir.path(), Split::Train); }, {"data_batch_1.bin", "truncated", "30730000"});
  expect_error([&] { read_cifar100(dir.path(), Split::Eval); }, {"test.bin"});
}

TEST(RealData, Mnist) {
  const auto dir = real_data();
  if (!dir || !std::filesystem::exists(*dir / "mnist")) GTEST_SKIP() << "no mnist/ in LOCKSTEP_TEST_DATA";
  const RunData pair = open_data(catalogue(), {.name = "mnist", .dir = *dir, .limit_eval = 500});
  EXPECT_EQ(pair.train->size(), 60000);
  EXPECT_EQ(pair.eval->size(), 500);
  EXPECT_EQ(pair.image_shape(), (Shape{1, 28, 28}));
  for (const auto& [index, label] : {std::pair{0, 5}, {1, 0}, {2, 4}, {59999, 8}}) {
    EXPECT_EQ(value_of<std::int32_t>(sample_of(*pair.train, index)[1]), label);
  }
  EXPECT_EQ(value_of<std::int32_t>(sample_of(*pair.eval, 0)[1]), 7);
}

TEST(RealData, Cifar10) {
  const auto dir = real_data();
  if (!dir || !std::filesystem::exists(*dir / "cifar-10-batches-bin"))
    GTEST_SKIP() << "no cifar-10-batches-bin/ in LOCKSTEP_TEST_DATA";
  for (const auto& folder : {*dir, *dir / "cifar-10-batches-bin"}) {
    const RunData pair = open_data(catalogue(), {.name = "cifar10", .dir = folder});
    EXPECT_EQ(pair.train->size(), 50000);
    EXPECT_EQ(pair.eval->size(), 10000);
    std::array<int, 10> counts{};
    for (std::int64_t i = 0; i < 10000; ++i) {
      ++counts[static_cast<std::size_t>(value_of<std::int32_t>(sample_of(*pair.eval, i)[1]))];
    }
    for (int n : counts) EXPECT_EQ(n, 1000);
  }
}

}  // namespace
}  // namespace lockstep::datasets
