#include "lockstep/core/stream_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using Result = StreamWriter::Result;

// A pipe whose reader is the test.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~Pipe() {
    close_reader();
    close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int writer() const { return ends_[1]; }
  void close_reader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  // Until it takes nothing; returns what it holds.
  std::size_t fill() {
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string block(4096, '.');
    std::size_t bytes = 0;
    for (ssize_t n; (n = ::write(ends_[1], block.data(), block.size())) > 0;) bytes += static_cast<std::size_t>(n);
    fcntl(ends_[1], F_SETFL, 0);
    return bytes;
  }
  std::string read(std::size_t bytes) {
    std::string text(bytes, '\0');
    std::size_t got = 0;
    while (got < bytes) {
      const ssize_t n = ::read(ends_[0], text.data() + got, bytes - got);
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    text.resize(got);
    return text;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(StreamWriter, TextIsThereWhenWriteReturns) {
  Pipe pipe;
  StreamWriter writer(pipe.writer(), {.patience = 60s});
  EXPECT_EQ(writer.write("one\n"), Result::Written);
  EXPECT_EQ(writer.write("two\n"), Result::Written);
  EXPECT_EQ(writer.pieces_waiting(), 0u);
  EXPECT_EQ(pipe.read(8), "one\ntwo\n");
}

TEST(StreamWriter, AStreamThatNobodyReadsHoldsNobodyUp) {
  Pipe pipe;
  const std::size_t before = pipe.fill();
  StreamWriter writer(pipe.writer(), {.patience = 20ms, .room = 100});
  EXPECT_EQ(writer.write("waits\n"), Result::Queued);
  EXPECT_EQ(writer.write("too\n"), Result::Queued);
  EXPECT_TRUE(writer.has_room());
  EXPECT_EQ(writer.write(std::string(200, 'x')), Result::Queued) << "there was room";
  EXPECT_FALSE(writer.has_room());
  EXPECT_EQ(writer.write("y"), Result::Dropped);
  EXPECT_EQ(writer.pieces_waiting(), 3u);
  EXPECT_FALSE(writer.flush(1ms));
  EXPECT_GT(writer.stuck_for(), 0ms);
  // A reader that comes gets what waited, in order, and writing waits again.
  EXPECT_EQ(pipe.read(before).size(), before);
  EXPECT_TRUE(writer.flush(60s));
  EXPECT_EQ(pipe.read(210), "waits\ntoo\n" + std::string(200, 'x'));
  EXPECT_EQ(writer.stuck_for(), 0ms);
}

TEST(StreamWriter, TheFirstPieceMayBeLargerThanTheRoom) {
  Pipe pipe;
  StreamWriter writer(pipe.writer(), {.patience = 60s, .room = 10});
  EXPECT_EQ(writer.write(std::string(5000, 'x')), Result::Written);
  EXPECT_EQ(pipe.read(5000), std::string(5000, 'x'));
}

TEST(StreamWriter, TheEndOfAWriterThatIsStuckDoesNotWaitForItsReader) {
  Pipe pipe;
  const std::size_t before = pipe.fill();
  {
    StreamWriter writer(pipe.writer(), {.patience = 10ms});
    writer.write("never read");
  }
  pipe.read(before);  // lets its thread end
  EXPECT_EQ(pipe.read(10), "never read");
}

// The test would die of SIGPIPE.
TEST(StreamWriter, AReaderThatIsGoneTakesEverything) {
  Pipe pipe;
  pipe.close_reader();
  StreamWriter writer(pipe.writer(), {.patience = 60s});
  EXPECT_EQ(writer.write("one\n"), Result::Written);
  EXPECT_EQ(writer.write("two\n"), Result::Written);
}

}  // namespace
}  // namespace lockstep
