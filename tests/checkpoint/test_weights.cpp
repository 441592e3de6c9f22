#include "lockstep/checkpoint/weights.h"

#include <cstdlib>

#include "tests/checkpoint/fixtures.h"

namespace lockstep::checkpoint {
namespace {

class Weights : public InDirectory {
 protected:
  // Runs a Python program with h5py and numpy in the test's directory; its exit status, -1 where there is no h5py. The
  // first python3 of the PATH may be one without Debian's packages.
  int python(const std::string& program) {
    const std::string text = "import h5py, numpy as np\n" + program;
    put(dir_ / "program.py", std::as_bytes(std::span(text)));
    for (const char* python : {"python3", "/usr/bin/python3"}) {
      if (std::system(formatted("{} -c 'import h5py, numpy' 2>/dev/null", python).c_str()) != 0) continue;
      return std::system(formatted("cd '{}' && {} program.py", dir_.string(), python).c_str());
    }
    return -1;
  }

  const fs::path path_ = dir_ / "w.h5";
};

// Values that Python can name: 0, 1, 2, ... in logical order.
template <class T>
Tensor numbered(const Shape& shape) {
  Tensor tensor(shape, dtype_of<T>);
  T next = 0;
  for (T& v : tensor.data<T>()) v = next++;
  return tensor;
}

std::vector<io::NamedTensor> state_dict() {
  std::vector<io::NamedTensor> dict;
  dict.push_back({"layer1.0.conv1.weight", numbered<float>({2, 3, 5, 5})});
  dict.push_back({"bn1.num_batches_tracked", numbered<std::int64_t>({})});
  dict.push_back({"fc.bias", numbered<double>({4})});
  dict.push_back({"none", Tensor({0, 3}, DType::F32)});
  dict.push_back({"ids", numbered<std::int32_t>({3, 2})});
  dict.push_back({"image", numbered<std::uint8_t>({2, 2})});
  return dict;
}

TEST_F(Weights, ComeBackAsTheyWere) {
  save_weights(path_, state_dict());
  expect_same(load_weights(path_), state_dict());
  EXPECT_EQ(names_in(dir_), std::vector<std::string>{"w.h5"});
}

TEST_F(Weights, OfACheckpointAreItsModel) {
  Checkpoint checkpoint{.tensors = state_dict(), .metadata = "{}"};
  for (io::NamedTensor& entry : checkpoint.tensors) entry.name = "model/" + entry.name;
  checkpoint.tensors.push_back({"optimizer/momentum/fc.bias", numbered<float>({4})});
  save(path_, checkpoint);
  expect_same(load_weights(path_), state_dict());

  std::vector<std::byte> bytes = bytes_of(path_);
  bytes[bytes.size() / 2] ^= std::byte{4};
  put(path_, bytes);
  EXPECT_NE(error_of([&] { load_weights(path_); }).find("w.h5: damaged"), std::string::npos);

  checkpoint.tensors.erase(checkpoint.tensors.begin(), checkpoint.tensors.end() - 1);
  save(path_, checkpoint);
  EXPECT_NE(error_of([&] { load_weights(path_); }).find("has no tensors in \"model/\""), std::string::npos);
}

TEST_F(Weights, OtherFilesAreErrors) {
  put(path_, {});
  EXPECT_NE(error_of([&] { load_weights(path_); }).find("neither a Lockstep checkpoint nor an HDF5 file"),
            std::string::npos);
  save_weights(path_, state_dict());
  const std::vector<std::byte> whole = bytes_of(path_);
  const std::size_t half = whole.size() / 2;
  for (const std::size_t length : {std::size_t{8}, std::size_t{96}, half, whole.size() - 1}) {
    put(path_, std::span(whole).first(length));
    EXPECT_TRUE(error_of([&] { load_weights(path_); }).starts_with("[checkpoint] " + path_.string())) << length;
    // The same file without its header and hash: HDF5's own length check.
    put(path_, std::span(whole).first(length).subspan(std::min(length, std::size_t{512})));
    EXPECT_TRUE(error_of([&] { load_weights(path_); }).starts_with("[checkpoint] " + path_.string())) << length;
  }
  std::vector<std::byte> flipped = whole;
  flipped[half] ^= std::byte{1};
  put(path_, flipped);
  EXPECT_NE(error_of([&] { load_weights(path_); }).find("w.h5: damaged: XXH3-128"), std::string::npos);
  put(path_, whole);
  EXPECT_NE(error_of([&] { load(path_); }).find("has weights and no metadata"), std::string::npos);
}

TEST_F(Weights, AndCheckpointsAreReadByH5py) {
  save_weights(path_, state_dict());
  Checkpoint checkpoint{.tensors = {}, .metadata = R"({"step": 3, "ä": "ö"})"};
  checkpoint.tensors.push_back({"model/layer1.0.conv1.weight", numbered<float>({2, 3, 5, 5})});
  checkpoint.tensors.push_back({"optimizer/momentum/fc.weight", numbered<double>({2, 2})});
  save(dir_ / "c.h5", checkpoint);
  const int status = python(R"(
import json
with h5py.File("w.h5", "r") as f:
    want = {"layer1.0.conv1.weight": ("<f4", (2, 3, 5, 5)), "bn1.num_batches_tracked": ("<i8", ()), "fc.bias": ("<f8", (4,)),
            "none": ("<f4", (0, 3)), "ids": ("<i4", (3, 2)), "image": ("|u1", (2, 2))}
    assert set(f) == set(want), list(f)
    for name, (dtype, shape) in want.items():
        got = f[name][()]
        assert got.dtype == np.dtype(dtype) and got.shape == shape, (name, got.dtype, got.shape)
        assert np.array_equal(got, np.arange(got.size).reshape(shape)), name
with h5py.File("c.h5", "r") as f:
    assert f.userblock_size == 512
    assert f["model/layer1.0.conv1.weight"][1, 2, 4, 4] == 149
    assert np.array_equal(f["optimizer"]["momentum"]["fc.weight"][()], [[0, 1], [2, 3]])
    assert json.loads(f["metadata"][()]) == {"step": 3, "ä": "ö"}
)");
  if (status == -1) GTEST_SKIP() << "python3 has no h5py";
  EXPECT_EQ(status, 0);
}

TEST_F(Weights, AreReadFromFilesThatH5pyWrote) {
  const int status = python(R"(
with h5py.File("w.h5", "w") as f:
    count = lambda dtype, *shape: np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    f["layer1.0.conv1.weight"] = count(">f4", 2, 3, 5, 5)
    f["bn1.num_batches_tracked"] = np.int64(0)
    f.create_dataset("fc.bias", data=count(">f8", 4), chunks=(3,), compression="gzip", shuffle=True)
    f["none"] = count("<f4", 0, 3)
    f["ids"] = count(">i4", 3, 2)
    f.create_dataset("image", data=count("u1", 2, 2), chunks=(1, 1), fletcher32=True)
with h5py.File("latest.h5", "w", libver="latest", track_order=True) as f:
    f["block/b"] = np.float32([1, 2])
    f["block/a"] = np.float32(3)
)");
  if (status == -1) GTEST_SKIP() << "python3 has no h5py";
  ASSERT_EQ(status, 0);
  expect_same(load_weights(path_), state_dict());
  const auto latest = load_weights(dir_ / "latest.h5");
  ASSERT_EQ(latest.size(), 2u);
  EXPECT_EQ(latest[0].name, "block/a");
  EXPECT_EQ(latest[0].tensor.data<float>()[0], 3);
  EXPECT_EQ(latest[1].tensor.data<float>()[1], 2);
}

// Beside the weights of others, a text "metadata" says nothing; beside a model's, the file is a checkpoint.
TEST_F(Weights, MayStandBesideATextOfOthers) {
  const int status = python(R"(
with h5py.File("w.h5", "w") as f:
    f["a"] = np.float32([1, 2])
    f["metadata"] = np.bytes_(b"words")
with h5py.File("c.h5", "w") as f:
    f["model/b"] = np.float32([3])
    f["optimizer/momentum/b"] = np.float32([4])
    f["metadata"] = np.bytes_(b"{}")
)");
  if (status == -1) GTEST_SKIP() << "python3 has no h5py";
  ASSERT_EQ(status, 0);
  const auto plain = load_weights(path_), of_model = load_weights(dir_ / "c.h5");
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain[0].name, "a");
  EXPECT_EQ(plain[0].tensor.data<float>()[1], 2);
  ASSERT_EQ(of_model.size(), 1u);
  EXPECT_EQ(of_model[0].name, "b");
}

TEST_F(Weights, OfOtherKindsAreErrorsThatNameTheDataset) {
  const int status = python(R"(
def one(name, fill):
    with h5py.File(name, "w") as f:
        fill(f)
one("half.h5", lambda f: f.create_dataset("bad", data=np.float16([1])))
one("bool.h5", lambda f: f.create_dataset("bad", data=np.array([True])))
one("text.h5", lambda f: f.create_dataset("bad", data="words"))
one("null.h5", lambda f: f.create_dataset("bad", data=h5py.Empty("f4")))
one("soft.h5", lambda f: f.__setitem__("bad", h5py.SoftLink("/elsewhere")))
one("external.h5", lambda f: f.__setitem__("bad", h5py.ExternalLink("half.h5", "bad")))
one("circle.h5", lambda f: f.__setitem__("bad", f["/"]))
one("huge.h5", lambda f: f.create_dataset("bad", (1 << 40,), "f4", chunks=(1024,)))
one("overflow.h5", lambda f: f.create_dataset("bad", (1 << 40, 1 << 40), "f4", chunks=(16, 16)))
one("unwritten.h5", lambda f: f.create_dataset("bad", (10,), "f4"))
one("outside.h5", lambda f: f.create_dataset("bad", (10,), "f4", external=[("half.h5", 0, 40)]))
)");
  if (status == -1) GTEST_SKIP() << "python3 has no h5py";
  ASSERT_EQ(status, 0);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"half", "not of type f32"},         {"bool", "not of type f32"},    {"text", "not of type f32"},
      {"null", "null dataspace"},          {"soft", "soft or external"},   {"external", "soft or external"},
      {"circle", "deeper than"},           {"huge", "claims shape"},       {"overflow", "claims shape"},
      {"unwritten", "were never written"}, {"outside", "outside the file"}};
  for (const auto& [name, text] : expected) {
    const auto file = dir_ / (name + ".h5");
    const std::string message = error_of([&] { load_weights(file); });
    EXPECT_NE(message.find(text), std::string::npos) << name << ": " << message;
    EXPECT_NE(message.find(name + ".h5: "), std::string::npos) << message;
    EXPECT_NE(message.find("bad"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
