#include "lockstep/io/isolated_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/io/child_process.h"
#include "lockstep/io/hdf5_handle.h"
#include "lockstep/io/image_read.h"

namespace lockstep::io {
namespace {

enum class Kind : std::uint8_t { Info, Metadata, Values, Failure, End };

// Precedes each record on the pipe. The name, the dimensions, and the values or text follow; of Info no values.
struct Head {
  Kind kind = Kind::End;
  DType dtype = DType::U8;
  std::uint32_t rank = 0;
  std::uint64_t name = 0, bytes = 0;
};

constexpr std::uint64_t kLongestName = 1 << 16;
constexpr std::uint32_t kMostDimensions = 32;  // H5S_MAX_RANK
// A child reads tensors up to this size before they are asked for; a table may be as large as memory.
constexpr std::size_t kReadAhead = std::size_t{16} << 20;

// The order to a child: the list of tensors, or this tensor and those behind it up to one above kReadAhead, or these
// rows of it.
struct Order {
  bool list = false;
  std::size_t first = 0;
  std::optional<Range> rows = {};
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// --- in the child

void send_text(int pipe, Kind kind, const std::string& text) {
  write_or_exit(pipe, bytes_of(Head{.kind = kind, .bytes = text.size()}));
  write_or_exit(pipe, std::as_bytes(std::span(text)));
}

void send_head(int pipe, Kind kind, const TensorInfo& info) {
  const auto& dims = info.shape.dims();
  write_or_exit(pipe, bytes_of(Head{.kind = kind,
                                    .dtype = info.dtype,
                                    .rank = static_cast<std::uint32_t>(dims.size()),
                                    .name = info.name.size(),
                                    .bytes = info.bytes()}));
  write_or_exit(pipe, std::as_bytes(std::span(info.name)));
  write_or_exit(pipe, std::as_bytes(std::span(dims)));
}

void send_values(int pipe, const std::string& name, const Tensor& tensor) {
  send_head(pipe, Kind::Values, {name, tensor.shape(), tensor.dtype()});
  write_or_exit(pipe, {tensor.raw(), tensor.bytes()});
}

void carry_out(const ImageReader& reader, const Order& order, int pipe) {
  if (order.list) {
    for (const TensorInfo& info : reader.tensors()) send_head(pipe, Kind::Info, info);
    if (reader.metadata()) send_text(pipe, Kind::Metadata, *reader.metadata());
    return send_text(pipe, Kind::End, "");
  }
  if (order.rows) {
    const std::string& name = reader.tensors().at(order.first).name;
    return send_values(pipe, name, reader.read_rows(order.first, *order.rows));
  }
  for (std::size_t i = order.first; i < reader.tensors().size(); ++i) {
    if (i > order.first && reader.tensors()[i].bytes() > kReadAhead) return;
    send_values(pipe, reader.tensors()[i].name, reader.read(i));
  }
}

void read_and_send(std::span<const std::byte> image, const std::string& file, const Order& order, int pipe) {
  try {
    carry_out(ImageReader(image, file), order, pipe);
  } catch (const Error& error) {
    send_text(pipe, Kind::Failure, error.what());
  } catch (const std::exception& error) {
    send_text(pipe, Kind::Failure, fmt::format("[checkpoint] {}: {}", file, error.what()));
  }
}

}  // namespace

// A child, and its records. HDF5 may have damaged the child's memory, so every field of a record is checked.
class IsolatedImage::Sender {
 public:
  Sender(std::span<const std::byte> image, const std::string& file, const Order& order) : file_(file) {
    constexpr std::size_t kPacked = 16;          // limit of the ratio between the size of the values and of the file
    constexpr std::size_t kPerSecond = 4 << 20;  // bytes of a file that are read per second, at least
    constexpr ChildLimits kLeast;
    const ChildLimits limits{.memory = kLeast.memory + kPacked * image.size(),
                             .seconds = kLeast.seconds + static_cast<int>(image.size() / kPerSecond)};
    left_ = limits.memory;
    // No other thread may be inside HDF5 during fork(): the child would inherit its locks and never see them released.
    std::unique_lock<std::mutex> idle = lock_hdf5();
    child_.emplace(limits, [&](int pipe) {
      idle.unlock();
      read_and_send(image, file, order, pipe);
    });
  }

  void list(std::vector<TensorInfo>& tensors, std::optional<std::string>& metadata) {
    for (Head head = next(); head.kind != Kind::End; head = next()) {
      if (head.kind == Kind::Metadata) {
        metadata = text(head.bytes);
      } else {
        expect(head.kind == Kind::Info);
        tensors.push_back(info(head));
      }
    }
  }

  // The values that come next, which must be of this name, shape and type.
  Tensor values(const TensorInfo& expected) {
    const Head head = next();
    expect(head.kind == Kind::Values);
    const TensorInfo found = info(head);
    expect(found.name == expected.name && found.shape == expected.shape && found.dtype == expected.dtype);
    Tensor tensor(found.shape, found.dtype);
    read({tensor.raw(), tensor.bytes()});
    return tensor;
  }

 private:
  void read(std::span<std::byte> out) {
    if (!child_->read(out))
      fail("checkpoint", "{}: damaged: the process that read it with HDF5 ended with {}", file_, child_->wait());
  }

  void expect(bool sane) {
    check(sane, "checkpoint", "{}: damaged: the reader process returned a malformed record", file_);
  }

  void take(std::uint64_t bytes) {
    expect(bytes <= left_);
    left_ -= bytes;
  }

  Head next() {
    Head head;
    read(std::as_writable_bytes(std::span(&head, 1)));
    if (head.kind == Kind::Failure) throw Error(text(std::min(head.bytes, kLongestName)));
    expect(head.kind < Kind::Failure || head.kind == Kind::End);
    return head;
  }

  std::string text(std::uint64_t bytes) {
    take(bytes);
    std::string text(bytes, '\0');
    read(std::as_writable_bytes(std::span(text)));
    return text;
  }

  TensorInfo info(const Head& head) {
    expect(head.name <= kLongestName && head.rank <= kMostDimensions && head.dtype <= DType::BF16);
    TensorInfo info{.name = text(head.name), .shape = {}, .dtype = head.dtype};
    std::vector<std::int64_t> dims(head.rank);
    read(std::as_writable_bytes(std::span(dims)));
    std::uint64_t bytes = size_of(head.dtype);
    for (const std::int64_t d : dims)
      expect(d >= 0 && !__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(d), &bytes));
    expect(bytes == head.bytes);
    if (head.kind == Kind::Values) take(bytes);
    info.shape = Shape(std::move(dims));
    return info;
  }

  const std::string& file_;
  std::uint64_t left_ = 0;  // bytes that the child may still send: it has memory for no more
  std::optional<ChildProcess> child_;
};

IsolatedImage::IsolatedImage(std::span<const std::byte> image, std::string file)
    : image_(image), file_(std::move(file)) {
  Sender(image_, file_, Order{.list = true}).list(tensors_, metadata_);
}

IsolatedImage::~IsolatedImage() = default;

Tensor IsolatedImage::read(std::size_t index) {
  std::unique_ptr<Sender> sender = std::move(sender_);  // one that fails is not asked again
  if (!sender || next_ != index || tensors_[index].bytes() > kReadAhead) {
    sender.reset();  // before the next one takes memory
    sender = std::make_unique<Sender>(image_, file_, Order{.first = index});
  }
  Tensor tensor = sender->values(tensors_[index]);
  sender_ = std::move(sender);
  next_ = index + 1;
  return tensor;
}

Tensor IsolatedImage::read_rows(std::size_t index, Range rows) {
  sender_.reset();
  TensorInfo part = tensors_[index];
  part.shape = part.shape.tail().batched(rows.size());
  return Sender(image_, file_, Order{.first = index, .rows = rows}).values(part);
}

}  // namespace lockstep::io
