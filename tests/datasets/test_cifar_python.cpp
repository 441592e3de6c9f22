#include "data/datasets/cifar_python.h"

#include "data/datasets/catalogue.h"
#include "data/datasets/pickle.h"
#include "tests/data/support.h"
#include "tests/datasets/python.h"

namespace lockstep::datasets {
namespace {

using namespace data;

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// A little-endian number of `width` bytes.
std::string little(std::size_t value, int width) {
  std::string text;
  for (int i = 0; i < width; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// As Python 2 wrote the official files: protocol 2, with byte strings.
std::string official(const std::vector<int>& labels, const std::string& pixels, const std::string& key = "labels") {
  std::string text =
      std::string("\x80\x02}q\x01(", 6) + "U" + little(11, 1) + "batch_label" + "q\x02" + "U" + little(4, 1) + "test";
  text += "U" + little(key.size(), 1) + key + "]q\x05(";
  for (const int label : labels) text += "K" + little(static_cast<std::size_t>(label), 1);
  text +=
      "eU\x04"
      "datacnumpy.core.multiarray\n_reconstruct\nq\x06"
      "cnumpy\nndarray\nq\x07K";
  text += std::string("\0", 1) +
          "\x85U\x01"
          "b\x87R(K\x01"
          "M" +
          little(labels.size(), 2) + "M" + little(3072, 2) + "\x86";
  text += "cnumpy\ndtype\nq\x08U\x02u1K" + std::string("\0", 1) + "K\x01\x87R(K\x03U\x01|NNNJ" + little(0xFFFFFFFF, 4) +
          "J" + little(0xFFFFFFFF, 4) + "K" + std::string("\0", 1) + "tb\x89T" + little(pixels.size(), 4) + pixels +
          "tbu.";
  return text;
}

std::string counted(std::size_t count) {
  std::string text(count, 0);
  for (std::size_t i = 0; i < count; ++i) text[i] = static_cast<char>(i * 7 + i / 3072);
  return text;
}

TEST(CifarPython, ReadsTheOfficialForm) {
  const TempDir dir;
  const std::string pixels = counted(3 * 3072);
  const auto file = dir.write("data_batch_1", bytes_of(official({5, 0, 9}, pixels)));
  const auto set = read_cifar_python({.files = {file, file}, .records = 3}, "labels");
  EXPECT_EQ(set->size(), 6);
  EXPECT_EQ(set->fields()[0].shape, (Shape{3, 32, 32}));
  EXPECT_EQ(value_of<std::int32_t>(sample_of(*set, 5)[1]), 9);
  EXPECT_EQ(sample_of(*set, 4)[0], bytes_of(pixels.substr(3072, 3072)));
}

TEST(CifarPython, FilesThatPythonWrote) {
  const TempDir dir;
  const std::string python = find_python("numpy");
  if (python.empty()) GTEST_SKIP() << "python3 has no numpy";
  ASSERT_EQ(run_python(python, dir.path(), R"(
import pickle, numpy as np
data = (np.arange(4 * 3072) % 251).astype(np.uint8).reshape(4, 3072)
entry = {b"filenames": [b"a.png"] * 4, b"fine_labels": [99, 0, 7, 7], b"coarse_labels": [1, 2, 3, 4], b"data": data, b"batch_label": "x", b"t": (None, True)}
for protocol in (2, 3, 4):
    pickle.dump(entry, open("p%d" % protocol, "wb"), protocol=protocol)
pickle.dump({"labels": [1] * 4, "data": np.asfortranarray(data)}, open("fortran", "wb"), protocol=3)
pickle.dump({"labels": [1] * 4, "data": data.astype(np.int32)}, open("wide", "wb"), protocol=3)
pickle.dump({"labels": [1] * 4, "data": data.tolist()}, open("list", "wb"), protocol=3)
pickle.dump({"labels": [1, 2, "x", 3], "data": data}, open("text", "wb"), protocol=3)
pickle.dump({"labels": [1, 2, 3], "data": data}, open("short", "wb"), protocol=3)
pickle.dump({"labels": [1, 2, 3, 10], "data": data}, open("range", "wb"), protocol=3)
pickle.dump({"data": data}, open("none", "wb"), protocol=3)
pickle.dump([data], open("no_dict", "wb"), protocol=3)
pickle.dump({"labels": [], "data": data}, open("zero", "wb"), protocol=0)
pickle.dump({"labels": [], "data": data}, open("five", "wb"), protocol=5)
class Evil:
    def __reduce__(self): return (__import__("os").system, ("touch evil",))
pickle.dump({"labels": [1] * 4, "data": Evil()}, open("call", "wb"), protocol=3)
)"),
            0);
  for (const char* name : {"p2", "p3", "p4"}) {
    const auto set = read_cifar_python({.files = {dir / name}, .records = 4, .classes = 100}, "fine_labels");
    EXPECT_EQ(set->images().labels, (std::vector<std::int32_t>{99, 0, 7, 7})) << name;
    for (std::size_t i = 0; i < 4 * 3072; ++i) ASSERT_EQ(set->images().pixels[i], i % 251) << name;
  }
  const auto bad = [&](const char* name, const std::vector<std::string>& parts) {
    expect_error([&] { read_cifar_python({.files = {dir / name}, .records = 4}, "labels"); }, parts);
  };
  bad("fortran", {"fortran", "offset", "column-major"});
  bad("wide", {"wide", "offset", "dtype 'i4'"});
  bad("list", {"list", "'data' is a list, expected an array"});
  bad("text", {"text", "'labels': item 2 is a text"});
  bad("short", {"short", "3 labels, expected 4"});
  bad("range", {"range", "record 3 has label 10, expected 0 to 9"});
  bad("none", {"none", "no key 'labels'", "'data'"});
  bad("no_dict", {"no_dict", "is a list, expected a dict"});
  bad("zero", {"zero", "offset 1", "opcode 0x64"});
  bad("five", {"five", "protocol 5, expected 2, 3 or 4"});
  bad("call", {"call", "calls 'posix system'"});
  EXPECT_FALSE(std::filesystem::exists(dir / "evil"));
  bad("p3", {"p3", "no key 'labels'", "'fine_labels'"});
}

TEST(CifarPython, DamageIsNamed) {
  const TempDir dir;
  const std::string whole = official({1, 2}, counted(2 * 3072));
  const auto read = [&](const std::string& text) {
    return read_cifar_python({.files = {dir.write("batch", bytes_of(text))}, .records = 2}, "labels");
  };
  EXPECT_EQ(read(whole)->size(), 2);
  for (std::size_t n = 0; n < whole.size(); n += n < 400 ? 1 : 97)
    expect_error([&] { read(whole.substr(0, n)); }, {"batch", "truncated"});
  expect_error([&] { read(whole + "x"); }, {"batch", "the pickle ends here, but the file has"});
  for (std::size_t i = 0; i < whole.size(); i += i < 400 ? 1 : 97) {
    for (const int bit : {0, 3, 7}) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try {  // a pixel, a label or a memo that nothing recalls
        EXPECT_EQ(read(flipped)->size(), 2);
      } catch (const Error&) {
      }
    }
  }
  expect_error([&] { read(official({1, 2}, counted(3072))); }, {"batch", "6144 elements, with 3072 bytes"});
  // Texts that are recalled again and again must not fill the memory.
  std::string bomb = std::string("\x80\x02X", 3) + little(60000, 4) + std::string(60000, 'a') + "q\x01X" +
                     little(6, 4) + "latin1q\x02";
  for (int i = 0; i < 2000; ++i) bomb += "c_codecs\nencode\nh\x01h\x02\x86R";
  expect_error([&] { read(bomb); }, {"batch", "texts longer than the file"});
}

TEST(CifarPython, TheSetIsFoundByTheNameOfEitherVersion) {
  const TempDir dir;
  expect_error([&] { read_cifar10(dir.path(), Split::Train); },
               {"data_batch_1.bin", "cifar-10-batches-py", dir.path().string()});
  std::filesystem::create_directories(dir / "cifar-10-batches-py");
  dir.write("cifar-10-batches-py/test_batch", bytes_of(official({1, 2}, counted(2 * 3072))));
  expect_error([&] { read_cifar10(dir.path(), Split::Eval); }, {"test_batch", "(2, 3072), expected (10000, 3072)"});
  std::filesystem::create_directories(dir / "cifar-100-python");
  dir.write("cifar-100-python/test", bytes_of(official({1, 2}, counted(2 * 3072), "fine_labels")));
  expect_error([&] { read_cifar100(dir.path(), Split::Eval); }, {"test", "(2, 3072), expected (10000, 3072)"});
}

}  // namespace
}  // namespace lockstep::datasets
