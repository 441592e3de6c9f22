#include "data/datasets/npy.h"

#include <cmath>
#include <functional>

#include "data/datasets/catalogue.h"
#include "tests/data/support.h"
#include "tests/datasets/python.h"

namespace lockstep::datasets {
namespace {

using namespace data;

Bytes npy(const std::string& header, const Bytes& elements, int major = 1) {
  Bytes bytes{0x93, 'N', 'U', 'M', 'P', 'Y', static_cast<std::uint8_t>(major), 0};
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) bytes.push_back(static_cast<std::uint8_t>(header.size() >> (8 * i)));
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

std::string header(const std::string& dtype, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + dtype + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

Bytes counted(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  return bytes;
}

// A folder with a whole data set: 4 images of 2 x 3 for training, 2 for evaluation.
void write_whole(const TempDir& dir) {
  dir.write("train_images.npy", npy(header("|u1", "(4, 2, 3)"), counted(24)));
  dir.write("train_labels.npy", npy(header("|u1", "(4,)"), {0, 2, 1, 0}));
  dir.write("eval_images.npy", npy(header("|u1", "(2, 2, 3)"), counted(12)));
  dir.write("eval_labels.npy", npy(header("|u1", "(2,)"), {3, 0}));
}

void expect_bad(const std::string& file, const Bytes& bytes, const std::vector<std::string>& parts) {
  const TempDir dir;
  write_whole(dir);
  dir.write(file, bytes);
  std::vector<std::string> all = parts;
  all.push_back(file);
  expect_error([&] { open_data(catalogue(), {.name = "npy", .dir = dir.path()}); }, all);
}

TEST(Npy, ReadsASetAndMeasuresItsPixels) {
  const TempDir dir;
  write_whole(dir);
  const RunData pair = open_data(catalogue(), {.name = "npy", .dir = dir.path()});
  EXPECT_EQ(pair.train->size(), 4);
  EXPECT_EQ(pair.eval->size(), 2);
  EXPECT_EQ(pair.classes(), 4);  // evaluation alone has the last one
  EXPECT_EQ(pair.image_shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(sample_of(*pair.train, 1)[0], (Bytes{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(value_of<std::int32_t>(sample_of(*pair.train, 1)[1]), 2);
  ASSERT_EQ(pair.images.pixels.mean.size(), 1u);
  EXPECT_NEAR(pair.images.pixels.mean[0], 11.5 / 255, 1e-6);                     // of 0 to 23
  EXPECT_NEAR(pair.images.pixels.stddev[0], std::sqrt(575.0 / 12) / 255, 1e-6);  // (24^2 - 1) / 12
}

TEST(Npy, LabelsMayBeAnyIntegers) {
  struct Row {
    const char* dtype;
    Bytes bytes;
  };
  for (const Row& row :
       {Row{"|i1", {1, 2}}, Row{"<i2", {1, 0, 2, 0}}, Row{">i2", {0, 1, 0, 2}}, Row{"<u4", {1, 0, 0, 0, 2, 0, 0, 0}},
        Row{">i8", {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2}}}) {
    const TempDir dir;
    write_whole(dir);
    dir.write("eval_labels.npy", npy(header(row.dtype, "(2,)"), row.bytes));
    const auto set = read_npy_split(dir.path(), Split::Eval);
    EXPECT_EQ(set->images().labels, (std::vector<std::int32_t>{1, 2})) << row.dtype;
  }
}

TEST(Npy, FilesThatNumPyWrote) {
  const TempDir dir;
  const std::string python = find_python("numpy");
  if (python.empty()) GTEST_SKIP() << "python3 has no numpy";
  ASSERT_EQ(run_python(python, dir.path(), R"(
import numpy as np
images = np.arange(5 * 3 * 4 * 6, dtype=np.uint8).reshape(5, 3, 4, 6)
np.save("train_images.npy", images)
np.save("train_labels.npy", np.array([4, 0, 1, 2, 3]))                       # int64
np.savez_compressed("eval.npz", labels=np.array([1, 1, 0], dtype=">i4"), images=images[:3])
with open("v2.npy", "wb") as f: np.lib.format.write_array(f, images, version=(2, 0))
with open("v3.npy", "wb") as f: np.lib.format.write_array(f, images, version=(3, 0))
np.savez("stored.npz", images=images, other=np.zeros(3))
np.save("fortran.npy", np.asfortranarray(images))
np.save("empty.npy", np.zeros((0, 3), np.uint8))
np.save("objects.npy", np.array([{}, None]), allow_pickle=True)
np.save("structured.npy", np.zeros(2, dtype=[("a", "i4")]))
np.save("complex.npy", np.zeros(2, dtype=complex))
)"),
            0);
  const RunData pair = open_data(catalogue(), {.name = "npy", .dir = dir.path()});
  EXPECT_EQ(pair.image_shape(), (Shape{3, 4, 6}));
  EXPECT_EQ(pair.classes(), 5);
  const Bytes all = counted(5 * 72);
  EXPECT_EQ(sample_of(*pair.train, 4)[0], Bytes(all.begin() + 4 * 72, all.end()));
  EXPECT_EQ(sample_of(*pair.eval, 2)[0], Bytes(all.begin() + 2 * 72, all.begin() + 3 * 72));
  EXPECT_EQ(value_of<std::int32_t>(sample_of(*pair.eval, 1)[1]), 1);
  for (const char* name : {"v2.npy", "v3.npy"}) {
    FileSource file(dir / name);
    EXPECT_EQ(read_npy(file).bytes, all) << name;
  }
  EXPECT_EQ(read_npz(dir / "stored.npz", "images").bytes, all);
  expect_error([&] { read_npz(dir / "stored.npz", "labels"); },
               {"stored.npz", "no array 'labels'", "images.npy, other.npy"});
  const auto read = [&](const char* name) {
    FileSource file(dir / name);
    return read_npy(file);
  };
  EXPECT_EQ(read("empty.npy").shape, (std::vector<std::int64_t>{0, 3}));
  expect_error([&] { read("fortran.npy"); }, {"fortran.npy", "Fortran order", "ascontiguousarray"});
  expect_error([&] { read("objects.npy"); }, {"objects.npy", "offset 20", "dtype '|O'"});
  expect_error([&] { read("structured.npy"); }, {"structured.npy", "structured dtype"});
  expect_error([&] { read("complex.npy"); }, {"complex.npy", "dtype '<c16'"});
}

TEST(Npy, WhatIsMissingIsNamed) {
  const TempDir dir;
  const auto open = [&] { open_data(catalogue(), {.name = "npy", .dir = dir.path()}); };
  expect_error(open, {"no train_labels.npy and no train.npz", dir.path().string()});
  write_whole(dir);
  std::filesystem::remove(dir / "eval_images.npy");
  expect_error(open, {"no eval_images.npy and no eval.npz"});
}

TEST(Npy, AnArrayInBothFormsIsRefused) {
  const TempDir dir;
  write_whole(dir);
  dir.write("eval.npz", {});
  expect_error([&] { open_data(catalogue(), {.name = "npy", .dir = dir.path()}); },
               {dir.path().string(), "has both eval.npz and eval_labels.npy, expected one of the two"});
}

// An archive with one stored member for each of `names`, with the same content (APPNOTE.TXT of PKWARE, 4.3).
Bytes zip_of(const std::vector<std::string>& names, const Bytes& content) {
  Bytes file, directory;
  const auto put = [](Bytes& to, std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  for (const std::string& name : names) {
    const std::uint64_t crc = crc32(0, content.data(), static_cast<unsigned>(content.size())), at = file.size();
    const auto common = [&](Bytes& to) {  // version, flags, method, time, date, checksum, sizes, lengths
      put(to, 20, 2);
      put(to, 0, 8);
      put(to, crc, 4);
      put(to, content.size(), 4);
      put(to, content.size(), 4);
      put(to, name.size(), 2);
      put(to, 0, 2);
    };
    put(file, 0x04034b50, 4);
    common(file);
    file.insert(file.end(), name.begin(), name.end());
    file.insert(file.end(), content.begin(), content.end());
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    common(directory);
    put(directory, 0, 4);  // comment, disk
    put(directory, 0, 6);  // attributes
    put(directory, at, 4);
    directory.insert(directory.end(), name.begin(), name.end());
  }
  const std::size_t begin = file.size();
  file.insert(file.end(), directory.begin(), directory.end());
  put(file, 0x06054b50, 4);
  put(file, 0, 4);
  put(file, names.size(), 2);
  put(file, names.size(), 2);
  put(file, directory.size(), 4);
  put(file, begin, 4);
  put(file, 0, 2);
  return file;
}

TEST(Npy, AnEntryThatIsTwiceInAnArchiveIsRefused) {
  const TempDir dir;
  const Bytes array = npy(header("|u1", "(4,)"), {0, 2, 1, 0});
  const auto once = dir.write("once.npz", zip_of({"labels.npy", "images.npy"}, array));
  EXPECT_EQ(read_npz(once, "images").bytes, (Bytes{0, 2, 1, 0}));
  const auto twice = dir.write("twice.npz", zip_of({"labels.npy", "images.npy", "labels.npy"}, array));
  expect_error([&] { read_npz(twice, "labels"); }, {"twice.npz", "2 entries labels.npy, expected one"});
  EXPECT_EQ(read_npz(twice, "images").bytes, (Bytes{0, 2, 1, 0}));
}

TEST(Npy, HeadersThatAreWrong) {
  const Bytes pixels = counted(24);
  const auto bad = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_bad("train_images.npy", npy(text, pixels), parts);
  };
  expect_bad("train_images.npy", {'P', 'K', 3, 4, 0, 0, 0, 0, 0, 0}, {"offset 0", "NUMPY"});
  expect_bad("train_images.npy", npy(header("|u1", "(4, 2, 3)"), pixels, 4), {"offset 6", "version 4", "1 to 3"});
  Bytes long_header = npy(header("|u1", "(4, 2, 3)"), pixels, 2);
  long_header[10] = 0xFF;
  expect_bad("train_images.npy", long_header, {"offset 8", "at most 65536"});
  bad("", {"header: offset 10", "expected '{'"});
  bad("{'descr': '|u1'", {"header: offset 25", "expected '}'"});
  bad("{'descr': '|u1', 'shape': (4, 2, 3)}", {"expected the keys descr, fortran_order and shape"});
  bad("{'descr': '|u1', 'fortran_order': Maybe, 'shape': (4, 2, 3)}", {"header: offset 44", "True or False"});
  bad("{'descr': '|u1', 'fortran_order': False, 'shape': (4, -2, 3)}", {"expected a size of at least 0"});
  bad("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 99999999999999999999, 3)}",
      {"expected a size of at least 0"});
  bad("{'descr': '|u1', 'fortran_order': False, 'shape': 4}", {"expected '('"});
  bad("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2, 3), 'colour': 1}", {"key 'colour'"});
  bad("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2, 3)} and more", {"text after the dict"});
  bad("{'descr': '|u1", {"a text without its end"});
  bad(header("|u1", "(4, 2, 3)", "True"), {"Fortran order"});
  bad(header("|V1", "(4, 2, 3)"), {"dtype '|V1'"});
  bad(header("|u1", "(4000000000, 4000000000, 4000000000)"), {"more than a file can hold"});
  bad(header("|u1", "(4, 1000000000000, 3)"), {"truncated", "12000000000000 bytes"});
}

TEST(Npy, ArraysThatAreNoImagesOrLabels) {
  const auto images = [](const std::string& dtype, const std::string& shape, std::size_t bytes,
                         const std::vector<std::string>& parts) {
    expect_bad("train_images.npy", npy(header(dtype, shape), counted(bytes)), parts);
  };
  images("<f4", "(4, 2, 3)", 96, {"images are float32, expected uint8"});
  images("|u1", "(24,)", 24, {"(24)", "(samples, rows, columns)"});
  images("|u1", "(4, 0, 3)", 0, {"(4, 0, 3)", "at least 1"});
  images("|u1", "(3, 2, 3)", 18, {"3 images", "4 labels"});
  images("|u1", "(4, 8, 8, 3)", 768, {"(4, 8, 8, 3)", "channels last"});
  const auto labels = [](const std::string& dtype, const std::string& shape, const Bytes& bytes,
                         const std::vector<std::string>& parts) {
    expect_bad("train_labels.npy", npy(header(dtype, shape), bytes), parts);
  };
  labels("<f4", "(4,)", counted(16), {"labels are float32, expected integers"});
  labels("|b1", "(4,)", counted(4), {"labels are bool"});
  labels("|u1", "(4, 1)", counted(4), {"(4, 1)", "expected (samples)"});
  labels("|u1", "(0,)", {}, {"no labels"});
  labels("|i1", "(4,)", {0, 1, 0xFF, 0}, {"record 2 has label -1"});
  labels("<u8", "(1,)", {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, {"record 0 has label"});
}

TEST(Npy, EveryTruncationAndATailAreNamed) {
  const Bytes whole = npy(header("|u1", "(4, 2, 3)"), counted(24));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    expect_bad("train_images.npy", Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)),
               {"truncated", "offset"});
  }
  Bytes longer = whole;
  longer.push_back(0);
  expect_bad("train_images.npy", longer, {"too long", "(4, 2, 3)"});
}

TEST(Npy, ArchivesThatAreDamaged) {
  const TempDir dir;
  expect_error([&] { read_npz(dir.write("a.npz", {'n', 'o', ' ', 'z', 'i', 'p'}), "images"); }, {"a.npz"});
  expect_error([&] { read_npz(dir.write("b.npz", {}), "images"); }, {"b.npz"});
  const std::string python = find_python("numpy");
  if (python.empty()) GTEST_SKIP() << "python3 has no numpy";
  ASSERT_EQ(run_python(python, dir.path(),
                       "import numpy as np\nnp.savez_compressed('c.npz', images=np.arange(999, dtype=np.uint8))"),
            0);
  std::ifstream stream(dir / "c.npz", std::ios::binary);
  const Bytes whole{std::istreambuf_iterator<char>(stream), {}};
  const Bytes elements = read_npz(dir / "c.npz", "images").bytes;
  constexpr std::size_t kZipEnd = 22;  // bytes of the record that ends an archive
  for (std::size_t n = 0; n < whole.size(); n += 7) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    const std::filesystem::path file = dir.write("cut.npz", cut);
    if (n + kZipEnd <= whole.size()) {
      expect_error([&] { read_npz(file, "images"); }, {"cut.npz"});
      continue;
    }
    try {  // all elements are there, and the record that ends the archive lacks its comment alone
      EXPECT_EQ(read_npz(file, "images").bytes, elements) << n;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("cut.npz"), std::string::npos) << error.what();
    }
  }
  int errors = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    Bytes flipped = whole;
    flipped[i] ^= 0x10;
    try {  // bytes such as time stamps change nothing
      EXPECT_EQ(read_npz(dir.write("flipped.npz", flipped), "images").bytes, elements) << i;
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, static_cast<int>(whole.size() / 3));
}

}  // namespace
}  // namespace lockstep::datasets
