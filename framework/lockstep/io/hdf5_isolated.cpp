// The reader in a process of its own. Requests go through a socket and replies come through the child's pipe:
// each is a message, a length and its bytes; the values of a slab follow a reply as they are.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/io/child_process.h"
#include "lockstep/io/hdf5_chunk_cache.h"
#include "lockstep/io/hdf5_handle.h"
#include "lockstep/io/hdf5_message.h"
#include "lockstep/io/hdf5_reader.h"

namespace lockstep::io {
namespace {

constexpr std::size_t kMessagePiece = std::size_t{64} << 20;  // memory for a reply is taken as its bytes come
constexpr int kRequestSeconds = 300;                          // processor time for one request
constexpr int kPipeBytes = 1 << 20;

enum class Task : std::uint8_t { Info, Groups, Read, Lists, ReadList };
enum class Answer : std::uint8_t { Good, Refused, Failed };  // Refused: with a whole message; Failed: with a cause

// --- in the child

void close_others(std::span<const int> kept) {
  std::vector<int> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::string name = entry.path().filename().string();
    int number = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc()) numbers.push_back(number);
  }
  for (const int number : numbers) {
    if (number > STDERR_FILENO && std::find(kept.begin(), kept.end(), number) == kept.end()) ::close(number);
  }
}

void renew_time_limit() {
  rusage used{};
  rlimit now{};
  if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &now) != 0) _exit(1);
  const auto spent = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  now.rlim_cur = std::min<rlim_t>(spent + kRequestSeconds, now.rlim_max);
  if (setrlimit(RLIMIT_CPU, &now) != 0) _exit(1);
}

// Fills `out`, or ends the process when the other side has gone.
void receive_or_exit(int socket, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = ::recv(socket, out.data(), out.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(0);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

Unpacked next_request(int socket) {
  std::uint64_t size = 0;
  receive_or_exit(socket, std::as_writable_bytes(std::span(&size, 1)));
  std::vector<std::byte> bytes(size);
  receive_or_exit(socket, bytes);
  return Unpacked(std::move(bytes));
}

void answer(int pipe, const Packed& message) {
  const auto size = static_cast<std::uint64_t>(message.bytes().size());
  write_or_exit(pipe, std::as_bytes(std::span(&size, 1)));
  write_or_exit(pipe, message.bytes());
}

// Carries one request out; `values` gets what follows the message.
Packed carry_out(Hdf5Reader& reader, Unpacked request, std::vector<std::byte>& values) {
  const auto task = request.take<Task>();
  const std::string file = request.take_text(), name = request.take_text();
  Packed message;
  message.put(Answer::Good);
  if (task == Task::Info) {
    message.put_info(reader.info(file, name));
  } else if (task == Task::Groups) {
    const std::vector<std::string> groups = reader.groups(file, name);
    message.put(static_cast<std::uint64_t>(groups.size()));
    for (const std::string& group : groups) message.put_text(group);
  } else if (task == Task::Lists) {
    message.put(reader.lists(file, name));
  } else if (task == Task::ReadList) {
    const auto index = request.take<std::int64_t>();
    std::vector<std::int64_t> list(request.take<std::uint64_t>());
    const std::int64_t length = reader.read_list(file, name, index, list);
    message.put(length);
    const auto bytes = std::as_bytes(std::span(list));
    if (std::cmp_less_equal(length, list.size()))
      values.assign(bytes.begin(), bytes.begin() + length * static_cast<std::int64_t>(sizeof(std::int64_t)));
  } else {
    const Hdf5Info expected = request.take_info();
    const Hdf5Slab slab{.start = request.take_list(), .count = request.take_list(), .step = request.take_list()};
    values.resize(request.take<std::uint64_t>());
    reader.read(file, name, expected, slab, values);
  }
  return message;
}

[[noreturn]] void serve(const Hdf5ReaderOptions& options, int socket, int pipe) {
  prctl(PR_SET_PDEATHSIG, 0);  // it would end this process with the thread that made it; the socket's end does instead
  // A copy of an open socket would keep its other side waiting when the parent ends.
  close_others(std::array{socket, pipe});
  fcntl(pipe, F_SETPIPE_SZ, kPipeBytes);  // a hint: fewer switches between the processes
  const std::unique_ptr<Hdf5Reader> reader = make_hdf5_reader(options);
  std::vector<std::byte> values;
  while (true) {
    Unpacked request = next_request(socket);
    renew_time_limit();
    values.clear();
    Packed message;
    try {
      message = carry_out(*reader, std::move(request), values);
    } catch (const std::exception& error) {
      values.clear();
      message = {};
      message.put(dynamic_cast<const Error*>(&error) != nullptr ? Answer::Refused : Answer::Failed);
      message.put_text(error.what());
    }
    answer(pipe, message);
    write_or_exit(pipe, values);
  }
}

// --- in the caller

class IsolatedReader : public Hdf5Reader {
 public:
  explicit IsolatedReader(const Hdf5ReaderOptions& options) : options_(options) {
    check(options.open_files > 0, "hdf5", "{} open files, expected at least 1", options.open_files);
  }

  Hdf5Info info(const std::string& file, const std::string& dataset) override {
    return guarded(file, [&] { return ask(file, start_request(Task::Info, file, dataset)).take_info(); });
  }

  std::vector<std::string> groups(const std::string& file, const std::string& group) override {
    return guarded(file, [&] {
      Unpacked reply = ask(file, start_request(Task::Groups, file, group));
      std::vector<std::string> names(reply.take_size(sizeof(std::uint64_t)));
      for (std::string& name : names) name = reply.take_text();
      return names;
    });
  }

  void read(const std::string& file, const std::string& dataset, const Hdf5Info& expected, const Hdf5Slab& slab,
            std::span<std::byte> out) override {
    Packed request = start_request(Task::Read, file, dataset);
    request.put_info(expected);
    request.put_list(slab.start);
    request.put_list(slab.count);
    request.put_list(slab.step);
    request.put(static_cast<std::uint64_t>(out.size()));
    guarded(file, [&] {
      ask(file, request);
      receive(file, out);
    });
  }

  std::int64_t lists(const std::string& file, const std::string& dataset) override {
    return guarded(file, [&] { return ask(file, start_request(Task::Lists, file, dataset)).take<std::int64_t>(); });
  }

  std::int64_t read_list(const std::string& file, const std::string& dataset, std::int64_t index,
                         std::span<std::int64_t> out) override {
    Packed request = start_request(Task::ReadList, file, dataset);
    request.put(index);
    request.put(static_cast<std::uint64_t>(out.size()));
    return guarded(file, [&] {
      const auto length = ask(file, request).take<std::int64_t>();
      if (length < 0) throw Malformed();
      if (std::cmp_less_equal(length, out.size()))
        receive(file, std::as_writable_bytes(out.first(static_cast<std::size_t>(length))));
      return length;
    });
  }

 private:
  static Packed start_request(Task task, const std::string& file, const std::string& name) {
    Packed request;
    request.put(task);
    request.put_text(file);
    request.put_text(name);
    return request;
  }

  // Runs `work` under the lock. After a malformed message the process is not trusted any more.
  template <class Work>
  std::invoke_result_t<Work&> guarded(const std::string& file, Work work) {
    const std::scoped_lock lock(mutex_);
    try {
      return work();
    } catch (const Malformed&) {
      child_.reset();
      fail("hdf5", "{}: damaged: the process that read it with HDF5 sent a malformed message", file);
    }
  }

  void start() {
    std::array<int, 2> ends{};
    check_call(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "hdf5", "socketpair");
    requests_ = FileDescriptor(ends[0]);
    const FileDescriptor theirs(ends[1]);
    const ChildLimits limits{.memory = options_.memory + 2 * cache_share(options_), .seconds = kRequestSeconds};
    // No other thread may be inside HDF5 during fork(): the child would inherit its locks and never see them released.
    std::unique_lock<std::mutex> idle = lock_hdf5();
    child_.emplace(limits, [&](int pipe) {
      idle.unlock();
      serve(options_, theirs.get(), pipe);
    });
  }

  Unpacked ask(const std::string& file, const Packed& request) {
    if (!child_) start();
    const auto size = static_cast<std::uint64_t>(request.bytes().size());
    send(file, std::as_bytes(std::span(&size, 1)));
    send(file, request.bytes());
    Unpacked reply(receive_message(file));
    const auto answer = reply.take<Answer>();
    if (answer == Answer::Good) return reply;
    const std::string text = reply.take_text();
    check(answer != Answer::Failed, "hdf5", "{}: {}", file, text);
    throw Error(text);
  }

  // MSG_NOSIGNAL: a process that has ended is an error, not a signal to this one.
  void send(const std::string& file, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(requests_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) stop(file);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  // The names of groups may be many; the child has no memory for a message above the limit.
  std::vector<std::byte> receive_message(const std::string& file) {
    std::uint64_t length = 0;
    receive(file, std::as_writable_bytes(std::span(&length, 1)));
    if (length > options_.memory) throw Malformed();
    std::vector<std::byte> bytes;
    while (bytes.size() < length) {
      const std::size_t had = bytes.size(), piece = std::min<std::size_t>(length - had, kMessagePiece);
      bytes.resize(had + piece);
      receive(file, std::span(bytes).subspan(had));
    }
    return bytes;
  }

  void receive(const std::string& file, std::span<std::byte> out) {
    if (!child_->read(out)) stop(file);
  }

  [[noreturn]] void stop(const std::string& file) {
    requests_ = FileDescriptor();
    const std::string end = child_->wait();
    child_.reset();
    fail("hdf5", "{}: damaged, or memory is short: the process that read it with HDF5 ended with {}", file, end);
  }

  Hdf5ReaderOptions options_;
  std::mutex mutex_;
  FileDescriptor requests_;
  std::optional<ChildProcess> child_;
};

}  // namespace

std::unique_ptr<Hdf5Reader> make_isolated_hdf5_reader(const Hdf5ReaderOptions& options) {
  return std::make_unique<IsolatedReader>(options);
}

}  // namespace lockstep::io
