#include "data/tool/download.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>

#include "data/tool/checksum.h"
#include "data/tool/output_file.h"
#include "data/tool/unpack.h"
#include "tests/data/support.h"
#include "tests/datasets/python.h"

namespace lockstep::datasets {
namespace {

using namespace data;

// Serves a folder on a port of its own. /whole/: with byte ranges; /plain/: without; /cut/: breaks off in the middle of
// every answer; /other/: with byte ranges, but of other bytes; /busy/: always 503. Notes each request in requests.txt.
constexpr const char* kServer = R"(
import http.server, os, pathlib, re, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        mode, name = self.path.strip("/").split("/")
        path = pathlib.Path("served") / name
        wanted = self.headers.get("Range", "")
        with open("requests.txt", "a") as log: log.write(mode + " " + wanted + "\n")
        if mode == "busy": return self.send_error(503)
        if not path.exists(): return self.send_error(404)
        body = path.read_bytes()
        if mode == "other": body = bytes(len(body))
        begin = int(re.match(r"bytes=(\d+)-", wanted).group(1)) if wanted and mode != "plain" else 0
        if begin >= len(body): return self.send_error(416)
        self.send_response(206 if wanted and mode != "plain" else 200)
        self.send_header("Content-Length", str(len(body) - begin))
        if wanted and mode != "plain": self.send_header("Content-Range", "bytes %d-%d/%d" % (begin, len(body) - 1, len(body)))
        self.end_headers()
        rest = body[begin:]
        self.wfile.write(rest[:len(rest) // 2] if mode == "cut" else rest)
    def log_message(self, *arguments): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], os.getpid(), flush=True)
server.serve_forever()
)";

class Download : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("curl --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no curl";
    for (const char* name : {"http_proxy", "all_proxy", "ALL_PROXY"}) unsetenv(name);
    std::filesystem::create_directories(dir_ / "served");
    for (std::size_t i = 0; i < 300'000; ++i) content_.push_back(static_cast<std::uint8_t>(i * i >> 5));
    dir_.write("served/file.bin", content_);
    file_ = {.name = "file.bin", .sha256 = sha256_of_file(dir_ / "served/file.bin"), .bytes = 300'000};
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    kill(server_pid_, SIGTERM);
    pclose(server_);
  }

  // Where /MODE/file.bin is served; empty: there is no Python.
  std::string url(const std::string& mode) {
    if (server_ == nullptr) {
      const std::string python = find_python("http.server");
      if (python.empty()) return "";
      std::ofstream(dir_ / "server.py") << kServer;
      server_ = popen(("cd '" + dir_.path().string() + "' && exec " + python + " server.py").c_str(), "r");
      if (server_ == nullptr || std::fscanf(server_, "%d %d", &port_, &server_pid_) != 2) return "";
    }
    return formatted("http://127.0.0.1:{}/{}/file.bin", port_, mode);
  }
  std::string requests() const {
    std::ifstream stream(dir_ / "requests.txt");
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  Bytes read(const std::string& name) const {
    std::ifstream stream(dir_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  Bytes first(std::size_t count) const {
    return {content_.begin(), content_.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  void expect_arrived() const {
    EXPECT_TRUE(read("file.bin") == content_);
    EXPECT_FALSE(std::filesystem::exists(dir_ / "file.bin.part"));
  }

  TempDir dir_;
  Bytes content_;
  RemoteFile file_;

 private:
  FILE* server_ = nullptr;
  int port_ = 0, server_pid_ = 0;
};

TEST_F(Download, FromAFolderAndFromAFileUrl) {
  for (const std::string& from :
       {(dir_ / "served/file.bin").string(), "file://" + (dir_ / "served/file.bin").string()}) {
    download(from, file_, dir_ / "file.bin");
    expect_arrived();
    std::filesystem::remove(dir_ / "file.bin");
  }
  expect_error([&] { download((dir_ / "absent").string(), file_, dir_ / "file.bin"); }, {"absent", "cannot be copied"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "file.bin"));
}

TEST_F(Download, ResumesWhatBrokeOff) {
  const std::string whole = url("whole");
  if (whole.empty()) GTEST_SKIP() << "there is no python3 to serve files";
  expect_error([&] { download(url("cut"), file_, dir_ / "file.bin"); },
               {"curl ended with status 18", "file.bin.part", "continues from there"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "file.bin"));
  const Bytes part = read("file.bin.part");
  ASSERT_GT(part.size(), 0u);
  ASSERT_LT(part.size(), content_.size());
  download(whole, file_, dir_ / "file.bin");
  expect_arrived();
  EXPECT_NE(requests().find(formatted("whole bytes={}-", part.size())), std::string::npos) << requests();
}

TEST_F(Download, AServerThatIsBusyCostsNoByteThatArrived) {
  if (url("busy").empty()) GTEST_SKIP() << "there is no python3 to serve files";
  dir_.write("file.bin.part", first(1000));
  expect_error([&] { download(url("busy"), file_, dir_ / "file.bin"); },
               {"curl ended with status 22", "file.bin.part", "continues from there"});
  EXPECT_EQ(read("file.bin.part"), first(1000));
  download(url("whole"), file_, dir_ / "file.bin");
  expect_arrived();
  EXPECT_NE(requests().find("whole bytes=1000-"), std::string::npos) << requests();
}

TEST_F(Download, BeginsAgainWhereItCannotResume) {
  if (url("whole").empty()) GTEST_SKIP() << "there is no python3 to serve files";
  dir_.write("file.bin.part", first(1000));
  download(url("plain"), file_, dir_ / "file.bin");  // no byte ranges
  expect_arrived();
  dir_.write("file.bin.part", Bytes(1000, 1));  // the beginning of another file
  download(url("whole"), file_, dir_ / "file.bin");
  expect_arrived();
  Bytes longer = content_;
  longer.push_back(0);
  dir_.write("file.bin.part", longer);
  download(url("whole"), file_, dir_ / "file.bin");
  expect_arrived();
  RemoteFile unknown = file_;  // whose size the table does not know
  unknown.bytes = 0;
  dir_.write("file.bin.part", longer);
  download(url("whole"), unknown, dir_ / "file.bin");
  expect_arrived();
}

TEST_F(Download, AWholePartOnlyGetsItsName) {
  dir_.write("file.bin.part", content_);
  download("http://127.0.0.1:9/never/file.bin", file_, dir_ / "file.bin");
  expect_arrived();
}

TEST_F(Download, OtherBytesAreRefused) {
  if (url("whole").empty()) GTEST_SKIP() << "there is no python3 to serve files";
  expect_error([&] { download(url("other"), file_, dir_ / "file.bin"); },
               {"not the expected file", "sha256", file_.sha256});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "file.bin"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "file.bin.part"));
  RemoteFile shorter = file_;
  shorter.bytes = 1000;
  expect_error([&] { download(url("whole"), shorter, dir_ / "file.bin"); }, {"300000 bytes, expected 1000"});
  expect_error([&] { download(url("whole") + ".absent", file_, dir_ / "file.bin"); }, {"status 22"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "file.bin"));
}

TEST_F(Download, ChecksumsOfInflatedBytesHoldForEveryPacking) {
  const RemoteFile packed{.name = "file.bin.gz", .sha256 = file_.sha256, .of = RemoteFile::Checksum::Content};
  download(dir_.write("served/file.bin.gz", gzip(content_)).string(), packed, dir_ / "file.bin.gz");
  EXPECT_EQ(sha256_of_content(dir_ / "file.bin.gz"), file_.sha256);
  Bytes cut = gzip(content_);
  cut.resize(cut.size() / 2);
  expect_error([&] { download(dir_.write("served/cut.gz", cut).string(), packed, dir_ / "cut.gz"); },
               {"not the expected file", "truncated"});
}

TEST_F(Download, TwoProcessesDoNotWriteOneFile) {
  dir_.write("file.bin.part", first(10));
  const int other = open((dir_ / "file.bin.part").c_str(), O_RDWR);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  expect_error([&] { download((dir_ / "served/file.bin").string(), file_, dir_ / "file.bin"); },
               {"another process is fetching"});
  EXPECT_EQ(read("file.bin.part"), first(10));
  close(other);
}

TEST_F(Download, APartThatIsNoFileIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo((dir_ / "file.bin.part").c_str(), 0600), 0);
  for (const std::string& from : {(dir_ / "served/file.bin").string(), "file://" + (dir_ / "served/file.bin").string()})
    expect_error([&] { download(from, file_, dir_ / "file.bin"); }, {"file.bin.part", "is not a regular file"});
  EXPECT_TRUE(std::filesystem::exists(dir_ / "file.bin.part")) << "it is not ours";
}

TEST_F(Download, AFailureLeavesNoEmptyPart) {
  const std::string absent = (dir_ / "absent").string();
  for (const std::string& from : {absent, "file://" + absent}) {
    expect_error([&] { download(from, file_, dir_ / "file.bin"); }, {"absent"});
    EXPECT_FALSE(std::filesystem::exists(dir_ / "file.bin.part")) << from;
  }
  expect_error([&] { download("file://" + absent, file_, dir_ / "file.bin"); }, {"no bytes arrived"});
}

// A limit of the size of files stands in for a full disk.
TEST_F(Download, ADiskThatTakesNoMoreIsNamed) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error([&] { download((dir_ / "served/file.bin").string(), file_, dir_ / "file.bin"); },
               {"file.bin.part", "cannot be written: File too large"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "file.bin.part"));
  expect_error([&] { download("file://" + (dir_ / "served/file.bin").string(), file_, dir_ / "file.bin"); },
               {"curl ended with status 23", "file.bin.part cannot be written, and its disk has", "is it full?"});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
}

TEST(Checksum, IsSha256) {
  const TempDir dir;
  EXPECT_EQ(sha256_of_file(dir.write("abc", {'a', 'b', 'c'})),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of_file(dir.write("none.gz", {})),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of_content(dir.write("abc.gz", gzip({'a', 'b', 'c'}))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sources, AreReadByTheCatalogueAndHaveChecksums) {
  for (const Source& source : sources()) {
    EXPECT_EQ(&find_source(source.name), &source) << "two sources are called " << source.name;
    EXPECT_TRUE(source.url.starts_with("https://") && source.url.ends_with('/')) << source.name;
    EXPECT_FALSE(source.files.empty()) << source.name;
    for (const RemoteFile& file : source.files) {
      EXPECT_EQ(file.sha256.size(), 64u) << file.name;
      EXPECT_EQ(file.sha256.find_first_not_of("0123456789abcdef"), std::string::npos) << file.name;
      EXPECT_EQ(file.name.ends_with(".tar.gz"), !file.members.empty()) << file.name;
    }
  }
  expect_error([] { find_source("imagenet"); }, {"'imagenet'", "mnist, cifar10"});
}

TEST(Unpack, TakesTheMembersThatAreAskedFor) {
  const TempDir dir;
  const auto run = [&](const std::string& command) {
    return std::system(formatted("cd '{}' && {}", dir.path().string(), command).c_str());
  };
  if (run("tar --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no tar";
  ASSERT_EQ(run("mkdir in in/a && printf one >in/a/one && printf two >in/a/two && ln -s /etc/passwd in/a/link && tar "
                "-C in -czf x.tar.gz a"),
            0);
  unpack(dir / "x.tar.gz", {"a/two"}, dir / "out");
  EXPECT_EQ(std::filesystem::file_size(dir / "out/a/two"), 3u);
  EXPECT_FALSE(std::filesystem::exists(dir / "out/a/one"));
  expect_error([&] { unpack(dir / "x.tar.gz", {"a/one", "a/three"}, dir / "out"); }, {"x.tar.gz", "lacks a/three"});
  expect_error([&] { unpack(dir / "x.tar.gz", {"a/link"}, dir / "out"); }, {"a/link is not a regular file"});
  expect_error([&] { unpack(dir / "absent", {"a"}, dir / "out"); }, {"absent", "cannot be opened"});
  expect_error([&] { unpack(dir.write("text", {'h', 'e', 'y'}), {"a"}, dir / "out"); }, {"text", "archive"});
  ASSERT_EQ(run("head -c 60 x.tar.gz >cut.tar.gz"), 0);
  expect_error([&] { unpack(dir / "cut.tar.gz", {"a/one"}, dir / "cut"); }, {"cut.tar.gz"});
  EXPECT_FALSE(std::filesystem::exists(dir / "cut/a/one"));
}

}  // namespace
}  // namespace lockstep::datasets
