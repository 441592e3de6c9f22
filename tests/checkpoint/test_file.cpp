#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "lockstep/io/envelope.h"
#include "lockstep/io/hdf5_handle.h"
#include "tests/checkpoint/fixtures.h"

namespace lockstep::checkpoint {
namespace {

class CheckpointFile : public InDirectory {
 protected:
  const fs::path path_ = dir_ / "c.h5";
};

TEST_F(CheckpointFile, KeepsEveryBitOfEveryDTypeAndShape) {
  const Checkpoint saved = sample_checkpoint();
  save(path_, saved);
  expect_same(load(path_), saved);
  StoredCheckpoint stored = open_checkpoint(path_);
  expect_same(stored.read(), saved);
  EXPECT_EQ(stored.path(), path_.string());
  const io::TensorSource source = stored.tensors();
  ASSERT_EQ(source.count(), saved.tensors.size());
  for (std::size_t i = source.count(); i-- > 0;) {  // in any order
    const auto& [name, tensor] = source.tensor(i);
    EXPECT_EQ(source.infos[i].name, name);
    EXPECT_EQ(source.infos[i].shape, tensor.shape());
    EXPECT_EQ(source.infos[i].dtype, tensor.dtype());
  }
  EXPECT_NO_THROW(verify(path_));
  EXPECT_EQ(names_in(dir_), std::vector<std::string>{"c.h5"});
}

TEST_F(CheckpointFile, KeepsExtremesOfMetadataAndNumberOfTensors) {
  for (const std::string& text : {std::string(), std::string("{}"), std::string(300'000, 'x')}) {
    Checkpoint saved{.tensors = {}, .metadata = text};
    expect_same(parse(serialize(saved), "t"), saved);
  }
  Checkpoint many;
  for (int i = 0; i < 2000; ++i) many.tensors.push_back({formatted("g{}/t{}", i % 3, i), Tensor({2}, DType::F32)});
  expect_same(parse(serialize(many), "t"), many);
  Checkpoint big{.tensors = {}, .metadata = "{}"};
  big.tensors.push_back({"a/b/c/d", random_tensor({1'500'000}, DType::F32, 5)});
  save(path_, big);
  expect_same(load(path_), big);
}

// HDF5 rounds, aligns and aggregates; wherever the end of the file falls, it is read back and ends in nothing else.
TEST_F(CheckpointFile, KeepsAnySizeAndNumber) {
  for (std::int64_t count = 0; count < 40; ++count) {
    for (const std::int64_t elements : {0, 1, 100, 511, 512, 1700, 2048, 5000}) {
      Checkpoint saved{.tensors = {}, .metadata = std::string(static_cast<std::size_t>(count * elements), 'm')};
      const Shape shape{elements};
      for (std::int64_t i = 0; i < count; ++i) {
        saved.tensors.push_back({formatted("{}/t{}", i % 4, i), random_tensor(shape, DType::U8, 1)});
      }
      const auto bytes = serialize(saved);
      expect_same(parse(bytes, "t"), saved);
      EXPECT_LT(bytes.size(), static_cast<std::size_t>(count * (2 * elements + 1024) + 16384));
    }
  }
}

TEST_F(CheckpointFile, SameContentsGiveTheSameBytes) {
  EXPECT_EQ(serialize(sample_checkpoint()), serialize(sample_checkpoint()));
  save(path_, sample_checkpoint());
  EXPECT_EQ(bytes_of(path_), serialize(sample_checkpoint()));
}

TEST_F(CheckpointFile, RefusesNamesAndTensorsThatItCannotStore) {
  const auto message = [&](const std::vector<std::string>& names) {
    Checkpoint c;
    for (const auto& name : names) c.tensors.push_back({name, Tensor({1}, DType::F32)});
    return error_of([&] { save(path_, c); });
  };
  for (const std::string& name :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("a/./b"),
        std::string("."), std::string("metadata"), std::string("metadata/x"), std::string("a\0b", 3)}) {
    EXPECT_NE(message({name}).find("tensor name"), std::string::npos) << name;
  }
  EXPECT_NE(message({"a", "a"}).find(path_.string() + ": a: "), std::string::npos) << message({"a", "a"});
  EXPECT_NE(message({"a", "a/b"}).find("a/b"), std::string::npos);
  EXPECT_NE(message({"a/b", "a"}).find("c.h5: a: "), std::string::npos);
  Checkpoint empty;
  empty.tensors.push_back({"none", Tensor()});
  EXPECT_NE(error_of([&] { save(path_, empty); }).find("\"none\""), std::string::npos);
  EXPECT_TRUE(names_in(dir_).empty());
  EXPECT_EQ(message({"..", "a b", "ä", "metadata2"}), "no error");
}

TEST_F(CheckpointFile, NoticesAFlippedBitAnywhere) {
  const std::vector<std::byte> whole = serialize(sample_checkpoint());
  std::vector<std::byte> bytes = whole;
  RandomStream random(11, 0);
  // Every bit of the user block's text and the superblock, then samples.
  for (std::size_t at = 0; at < bytes.size(); at += at < 1024 ? 1 : 1 + random.below(40)) {
    for (int bit = 0; bit < 8; bit += at < 160 ? 1 : 5) {
      bytes[at] ^= std::byte{1} << bit;
      const std::string message = error_of([&] { parse(bytes, "broken.h5"); });
      EXPECT_TRUE(message.starts_with("[checkpoint] broken.h5: ")) << at << " " << message;
      const bool by_hash = message.find("XXH3-128 of its contents is ") != std::string::npos;
      EXPECT_TRUE(at < 512 || by_hash) << at << " " << message;
      bytes[at] = whole[at];
    }
  }
  for (const std::size_t at : {std::size_t{0}, std::size_t{22}, std::size_t{300}, whole.size() / 2, whole.size() - 1}) {
    bytes[at] ^= std::byte{0x10};
    put(path_, bytes);
    const std::string message = error_of([&] { load(path_); });
    EXPECT_NE(message.find(path_.string()), std::string::npos) << message;
    EXPECT_EQ(error_of([&] { verify(path_); }), message);
    bytes[at] = whole[at];
  }
}

TEST_F(CheckpointFile, NoticesEveryLengthButTheRightOne) {
  std::vector<std::byte> whole = serialize(sample_checkpoint());
  RandomStream random(12, 0);
  for (std::size_t length = 0; length < whole.size(); length += length < 600 ? 1 : 1 + random.below(900)) {
    const auto message = error_of([&] { parse(std::span(whole).first(length), "short.h5"); });
    EXPECT_NE(message.find(formatted("cut short: has {} bytes, expects ", length)), std::string::npos) << message;
  }
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{5}, std::size_t{511}, std::size_t{512}, whole.size() - 1}) {
    put(path_, std::span(whole).first(length));
    const std::string message = error_of([&] { load(path_); });
    EXPECT_NE(message.find(formatted("c.h5: cut short: has {} bytes", length)), std::string::npos) << message;
    EXPECT_EQ(error_of([&] { verify(path_); }), message);
  }
  const std::size_t size = whole.size();
  whole.push_back(std::byte{0});
  EXPECT_EQ(error_of([&] { parse(whole, "t"); }),
            formatted("[checkpoint] t: too long: has {} bytes, expects {}", size + 1, size));
}

TEST_F(CheckpointFile, NamesWhatAFileIsInstead) {
  EXPECT_NE(error_of([&] { load(path_); }).find("c.h5: open: No such file"), std::string::npos);
  EXPECT_NE(error_of([&] { load(dir_); }).find("expected a regular file"), std::string::npos);
  put(path_, std::as_bytes(std::span("PK\3\4 something else")));
  EXPECT_NE(error_of([&] { load(path_); }).find("not a Lockstep checkpoint"), std::string::npos);
  std::vector<std::byte> newer = serialize(sample_checkpoint());
  const char version[] = "version 3";
  std::memcpy(newer.data() + 20, version, sizeof version - 1);
  put(path_, newer);
  EXPECT_NE(error_of([&] { load(path_); }).find("format version 3 is newer than this build, which reads up to 2"),
            std::string::npos);
}

// Writes a header of version 1 over that of a file without a note.
void make_version_1(std::vector<std::byte>& bytes) {
  io::PayloadHash hash;
  hash.update(std::span(bytes).subspan(io::kEnvelopeBytes));
  std::string text = formatted("LOCKSTEP CHECKPOINT\nversion 1\npayload {}\nxxh3-128 {}\n",
                               bytes.size() - io::kEnvelopeBytes, hash.digest());
  text.resize(io::kEnvelopeBytes - 1, ' ');
  text += '\n';
  std::memcpy(bytes.data(), text.data(), text.size());
}

TEST_F(CheckpointFile, LoadsFormatVersion1) {
  std::vector<std::byte> bytes = serialize(sample_checkpoint());
  make_version_1(bytes);
  expect_same(parse(bytes, "old"), sample_checkpoint());
  put(path_, bytes);
  EXPECT_NO_THROW(verify(path_));
  EXPECT_EQ(read_note(path_), "");
  std::vector<std::byte> version_0 = bytes;
  version_0[28] = std::byte{'0'};  // behind the magic and "version "
  EXPECT_NE(error_of([&] { parse(version_0, "none"); }).find("none: damaged: the header"), std::string::npos);
  bytes.back() ^= std::byte{1};
  EXPECT_NE(error_of([&] { parse(bytes, "old"); }).find("old: damaged"), std::string::npos);
}

template <class T>
Tensor counted(const Shape& shape) {
  Tensor tensor(shape, dtype_of<T>);
  T next{};
  for (T& v : tensor.data<T>()) v = next++;
  return tensor;
}

// A file of format version 2 in which HDF5 mixed values with names and shapes, as it did when it wrote the values.
TEST_F(CheckpointFile, LoadsAFileOfTheFormerVersion) {
  Checkpoint expected{.tensors = {}, .metadata = R"({"step": 3, "text": "grüße"})"};
  expected.tensors.push_back({"model/layer1.0.conv1.weight", counted<float>({2, 3, 5, 5})});
  expected.tensors.push_back({"model/bn1.num_batches_tracked", counted<std::int64_t>({})});
  expected.tensors.push_back({"model/none", Tensor({0, 3}, DType::F32)});
  expected.tensors.push_back({"model/image", counted<std::uint8_t>({2, 2})});
  expected.tensors.push_back({"optimizer/momentum/fc.weight", counted<double>({4, 2})});
  expect_same(load(LOCKSTEP_FORMER_FILE), expected);
  EXPECT_EQ(read_note(LOCKSTEP_FORMER_FILE), R"({"loss": 0.5})");
}

Draft draft_of(const Checkpoint& checkpoint, const std::string& note) {
  return {.tensors = io::source_of(checkpoint.tensors), .metadata = checkpoint.metadata, .note = note};
}

TEST_F(CheckpointFile, ANoteIsReadWithoutTheRestAndBelongsToTheHash) {
  const Checkpoint saved = sample_checkpoint();
  save(path_, draft_of(saved, R"({"loss": 0.5})"));
  expect_same(load(path_), saved);
  EXPECT_EQ(read_note(path_), R"({"loss": 0.5})");
  std::vector<std::byte> bytes = bytes_of(path_);
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), io::kEnvelopeBytes);
  bytes[head.find("0.5")] = std::byte{'1'};
  EXPECT_NE(error_of([&] { parse(bytes, "t"); }).find("t: damaged: XXH3-128"), std::string::npos);
  for (const std::string& note : {std::string(257, 'x'), std::string("two\nlines")})
    EXPECT_NE(error_of([&] { serialize(draft_of(saved, note)); }).find("expected one line"), std::string::npos);
  EXPECT_EQ(error_of([&] { serialize(draft_of(saved, std::string(256, 'x'))); }), "no error");
}

// The damage that a tensor's checksum finds although the file's hash holds: memory that went wrong while the file was
// made.
TEST_F(CheckpointFile, ATensorThatItsChecksumDeniesIsNamed) {
  Checkpoint saved{.tensors = {}, .metadata = "{}"};
  for (const char* name : {"model/a", "model/b", "optimizer/c"})
    saved.tensors.push_back({name, random_tensor({100}, DType::F32, static_cast<std::uint64_t>(name[6]))});
  std::vector<std::byte> bytes = serialize(saved);
  const auto values = std::as_bytes(saved.tensors[1].tensor.data<float>());
  const auto found = std::search(bytes.begin(), bytes.end(), values.begin(), values.end());
  ASSERT_NE(found, bytes.end());
  *(found + 200) ^= std::byte{8};
  seal(bytes);
  put(path_, bytes);
  EXPECT_NO_THROW(verify(path_));
  const std::string message = error_of([&] { load(path_); });
  EXPECT_NE(message.find("c.h5: damaged: XXH3-64 of the values of \"model/b\" is "), std::string::npos) << message;
}

TEST_F(CheckpointFile, GarbageIsAnError) {
  RandomStream random(13, 0);
  const std::vector<std::byte> whole = serialize(sample_checkpoint());
  for (int i = 0; i < 400; ++i) {
    std::vector<std::byte> bytes(random.below(3000));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random.below(256));
    // Some begin as a real file does, so that later checks are reached.
    if (i % 2) std::copy_n(whole.begin(), std::min(bytes.size(), std::size_t{random.below(700)}), bytes.begin());
    EXPECT_THROW(parse(bytes, "garbage"), Error);
    if (i % 40 > 1) continue;
    put(path_, bytes);
    EXPECT_THROW(load(path_), Error);
  }
  // A header that claims all there can be allocates nothing.
  std::string text(512, ' ');
  const std::string claim =
      "LOCKSTEP CHECKPOINT\nversion 1\npayload 9223372036854775807\nxxh3-128 " + std::string(32, '0') + "\n";
  text.replace(0, claim.size(), claim).back() = '\n';
  const std::string message = error_of([&] { parse(std::as_bytes(std::span(text)), "claim"); });
  EXPECT_EQ(message, "[checkpoint] claim: cut short: has 512 bytes, expects 9223372036854776319");
}

TEST_F(CheckpointFile, AFailedSaveLeavesTheOldFileAndNothingElse) {
  const fs::path parent_is_file = path_ / "sub.h5";
  save(path_, sample_checkpoint(1));
  const std::string message = error_of([&] { save(parent_is_file, sample_checkpoint(2)); });
  EXPECT_NE(message.find(parent_is_file.string() + ": create temporary file"), std::string::npos) << message;
  EXPECT_NE(message.find("Not a directory"), std::string::npos) << message;
  EXPECT_NE(error_of([&] { save(dir_ / "no" / "c.h5", sample_checkpoint(2)); }).find("No such file"),
            std::string::npos);
  fs::create_directory(dir_ / "taken");
  EXPECT_NE(error_of([&] { save(dir_ / "taken", sample_checkpoint(2)); }).find("is a folder"), std::string::npos);
  expect_same(load(path_), sample_checkpoint(1));
  EXPECT_EQ(names_in(dir_), (std::vector<std::string>{"c.h5", "taken"}));
}

// Runs `action` in a child process, for what would change this one; true if it returned true.
bool in_child(const std::function<bool()>& action) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(action() ? 0 : 1);
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(CheckpointFile, AnUnwritableDirectoryIsNamed) {
  using fs::perms;
  save(path_, sample_checkpoint(1));
  fs::permissions(dir_, perms::owner_read | perms::owner_exec | perms::others_read | perms::others_exec);
  EXPECT_TRUE(in_child([&] {
    constexpr uid_t nobody = 65534;  // root may write anywhere
    if (::geteuid() == 0 && ::setuid(nobody) != 0) return false;
    const std::string message = error_of([&] { save(path_, sample_checkpoint(2)); });
    return message.find(path_.string() + ": create temporary file") != std::string::npos &&
           message.find("Permission denied") != std::string::npos;
  }));
  fs::permissions(dir_, perms::owner_all);
  expect_same(load(path_), sample_checkpoint(1));
  EXPECT_EQ(names_in(dir_), std::vector<std::string>{"c.h5"});
}

// In a child, whose file size limit plays the full disk: whether save() reports it with file, operation and reason.
bool save_reports_limit(const fs::path& path, rlim_t limit) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limits{limit, limit};
  if (::setrlimit(RLIMIT_FSIZE, &limits) != 0) return false;
  const std::string message = error_of([&] { save(path, sample_checkpoint(2)); });
  return message.find(path.string() + ": write to temporary file") != std::string::npos &&
         message.find("File too large") != std::string::npos;
}

TEST_F(CheckpointFile, AFullDiskLeavesTheOldFileAndNothingElse) {
  save(path_, sample_checkpoint(1));
  const std::size_t size = fs::file_size(path_);
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, std::size_t{511}, std::size_t{4096}, size - 1}) {
    EXPECT_TRUE(in_child([&] { return save_reports_limit(path_, limit); })) << limit;
    expect_same(load(path_), sample_checkpoint(1));
    EXPECT_EQ(names_in(dir_), std::vector<std::string>{"c.h5"}) << limit;
  }
}

TEST(Hdf5Handle, ReportsTheTextOfAFailure) {
  const io::Hdf5Session session;
  const auto open = [] { io::Hdf5Handle(-1, nullptr, "f.h5", "H5Fopen"); };
  EXPECT_TRUE(error_of(open).starts_with("[checkpoint] f.h5: H5Fopen: ")) << error_of(open);
}

}  // namespace
}  // namespace lockstep::checkpoint
