#include "lockstep/io/isolated_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/io/child_process.h"
#include "lockstep/io/hdf5_handle.h"
#include "lockstep/io/image_read.h"

namespace lockstep::io {
namespace {

enum class Kind : std::uint8_t { Tensor, Metadata, Failure, End };

// Precedes each record on the pipe; the name, the dimensions, and the values or text follow.
struct Head {
  Kind kind = Kind::End;
  DType dtype = DType::U8;
  std::uint32_t rank = 0;
  std::uint64_t name = 0, bytes = 0;
};

constexpr std::uint64_t kLongestName = 1 << 16;
constexpr std::uint32_t kMostDimensions = 32;  // H5S_MAX_RANK

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

void send_text(int pipe, Kind kind, const std::string& text) {
  write_or_exit(pipe, bytes_of(Head{.kind = kind, .bytes = text.size()}));
  write_or_exit(pipe, std::as_bytes(std::span(text)));
}

// Runs in the child.
void read_and_send(std::span<const std::byte> image, const std::string& file, int pipe) {
  try {
    const ImageReader reader(image, file);
    for (std::size_t i = 0; i < reader.tensors().size(); ++i) {
      const std::string& name = reader.tensors()[i].name;
      const Tensor tensor = reader.read(i);
      const auto& dims = tensor.shape().dims();
      write_or_exit(pipe, bytes_of(Head{.kind = Kind::Tensor,
                                        .dtype = tensor.dtype(),
                                        .rank = static_cast<std::uint32_t>(dims.size()),
                                        .name = name.size(),
                                        .bytes = tensor.bytes()}));
      write_or_exit(pipe, std::as_bytes(std::span(name)));
      write_or_exit(pipe, std::as_bytes(std::span(dims)));
      write_or_exit(pipe, {tensor.raw(), tensor.bytes()});
    }
    if (reader.metadata()) send_text(pipe, Kind::Metadata, *reader.metadata());
  } catch (const Error& error) {
    return send_text(pipe, Kind::Failure, error.what());
  } catch (const std::exception& error) {
    return send_text(pipe, Kind::Failure, fmt::format("[checkpoint] {}: {}", file, error.what()));
  }
  send_text(pipe, Kind::End, "");
}

// Runs in the caller. HDF5 may have corrupted the child's memory, so every field of a record is checked.
class Receiver {
 public:
  Receiver(ChildProcess& child, std::uint64_t most, const std::string& file)
      : child_(child), left_(most), file_(file) {}

  Image receive() {
    Image image;
    while (true) {
      Head head;
      read(std::as_writable_bytes(std::span(&head, 1)));
      if (head.kind == Kind::Tensor) {
        image.tensors.push_back(tensor(head));
      } else if (head.kind == Kind::Metadata) {
        image.metadata = text(head.bytes);
      } else if (head.kind == Kind::Failure) {
        throw Error(text(std::min(head.bytes, kLongestName)));
      } else {
        expect(head.kind == Kind::End);
        return image;
      }
    }
  }

 private:
  void read(std::span<std::byte> out) {
    if (!child_.read(out))
      fail("checkpoint", "{}: damaged: the process that read it with HDF5 ended with {}", file_, child_.wait());
  }

  void expect(bool sane) {
    check(sane, "checkpoint", "{}: damaged: the reader process returned a malformed record", file_);
  }

  void take(std::uint64_t bytes) {
    expect(bytes <= left_);
    left_ -= bytes;
  }

  std::string text(std::uint64_t bytes) {
    take(bytes);
    std::string text(bytes, '\0');
    read(std::as_writable_bytes(std::span(text)));
    return text;
  }

  NamedTensor tensor(const Head& head) {
    expect(head.name <= kLongestName && head.rank <= kMostDimensions && head.dtype <= DType::BF16);
    NamedTensor entry{.name = text(head.name), .tensor = {}};
    std::vector<std::int64_t> dims(head.rank);
    read(std::as_writable_bytes(std::span(dims)));
    std::uint64_t bytes = size_of(head.dtype);
    for (const std::int64_t d : dims)
      expect(d >= 0 && !__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(d), &bytes));
    expect(bytes == head.bytes);
    take(bytes);
    entry.tensor = Tensor(Shape(std::move(dims)), head.dtype);
    read({entry.tensor.raw(), entry.tensor.bytes()});
    return entry;
  }

  ChildProcess& child_;
  std::uint64_t left_;  // bytes that the child may still send: it had memory for no more
  const std::string& file_;
};

}  // namespace

Image read_image_isolated(std::span<const std::byte> image, const std::string& file) {
  constexpr std::size_t kPacked = 16;          // limit of the ratio between the size of the values and of the file
  constexpr std::size_t kPerSecond = 4 << 20;  // bytes of a file that are read per second, at least
  constexpr ChildLimits kLeast;
  const ChildLimits limits{.memory = kLeast.memory + kPacked * image.size(),
                           .seconds = kLeast.seconds + static_cast<int>(image.size() / kPerSecond)};
  std::optional<ChildProcess> child;
  {
    // No other thread may be inside HDF5 during fork(): the child would inherit its locks and never see them released.
    std::unique_lock<std::mutex> idle = lock_hdf5();
    child.emplace(limits, [&](int pipe) {
      idle.unlock();
      read_and_send(image, file, pipe);
    });
  }
  return Receiver(*child, limits.memory, file).receive();
}

}  // namespace lockstep::io
