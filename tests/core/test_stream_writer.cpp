#include "lockstep/core/stream_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <system_error>
#include <thread>

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

// In a child in which no thread can be started: no address space has room for its stack.
template <class Work>
void expect_without_threads(const Work& work) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(120);  // ends what hangs
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, std::size_t{1} << 47);
    if (pthread_setattr_default_np(&attributes) != 0) _exit(2);
    try {
      std::thread([] {}).join();
      _exit(3);  // one was started
    } catch (const std::system_error&) {
      work();
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFSIGNALED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(StreamWriterWithoutThreads, WritesItself) {
  Pipe pipe;
  expect_without_threads([&] {
    StreamWriter writer(pipe.writer());
    EXPECT_EQ(writer.write("one\n"), Result::Written);
    EXPECT_EQ(writer.write(std::string(10'000, 'x')), Result::Written);
  });
  EXPECT_EQ(pipe.read(10'004), "one\n" + std::string(10'000, 'x'));
}

TEST(StreamWriterWithoutThreads, AStreamThatNobodyReadsHoldsNobodyUp) {
  Pipe pipe;
  const std::size_t before = pipe.fill();
  expect_without_threads([&] {
    StreamWriter writer(pipe.writer(), {.patience = 20ms, .room = 100});
    EXPECT_EQ(writer.write("waits\n"), Result::Queued);
    EXPECT_EQ(writer.write(std::string(200, 'x')), Result::Queued) << "there was room";
    EXPECT_EQ(writer.write("y"), Result::Dropped);
    EXPECT_EQ(fcntl(pipe.writer(), F_GETFL) & O_NONBLOCK, 0) << "the mode belongs to all who share the pipe";
    EXPECT_FALSE(writer.flush(1ms));
    EXPECT_EQ(pipe.read(before).size(), before);
    EXPECT_TRUE(writer.flush(60s));
    EXPECT_EQ(writer.write("again\n"), Result::Written);
    EXPECT_EQ(pipe.read(212), "waits\n" + std::string(200, 'x') + "again\n");
  });
}

TEST(StreamWriterWithoutThreads, AReaderThatIsGoneTakesEverything) {
  Pipe pipe;
  pipe.close_reader();
  expect_without_threads([&] {
    StreamWriter writer(pipe.writer());
    EXPECT_EQ(writer.write("lost\n"), Result::Written);
  });
}

TEST(StreamWriterWithoutThreads, ASocketThatNobodyReadsHoldsNobodyUp) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  expect_without_threads([&] {
    StreamWriter writer(ends[1], {.patience = 20ms, .room = std::size_t{1} << 30});
    EXPECT_EQ(writer.write(std::string(std::size_t{1} << 26, 'x')), Result::Queued);
  });
  close(ends[0]);
  close(ends[1]);
}

TEST(StreamWriterWithoutThreads, AFileIsAddedTo) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  expect_without_threads([&] {
    StreamWriter writer(fileno(file));
    EXPECT_EQ(writer.write("one\n"), Result::Written);
    EXPECT_EQ(writer.write("two\n"), Result::Written);
  });
  EXPECT_EQ(lseek(fileno(file), 0, SEEK_END), 8);
  std::fclose(file);
}

}  // namespace
}  // namespace lockstep
