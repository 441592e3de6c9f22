// Messages between this process and the process that reads HDF5 files: values, texts and lists one after the other, in
// the order in which both sides know them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/io/hdf5_reader.h"

namespace lockstep::io {

struct Malformed {};  // thrown for a message that is not what it should be

// A message under construction.
class Packed {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(T value) { append(&value, sizeof value); }
  void put_text(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    append(text.data(), text.size());
  }
  void put_list(const std::vector<std::int64_t>& list) {
    put(static_cast<std::uint64_t>(list.size()));
    for (const std::int64_t value : list) put(value);
  }
  void put_info(const Hdf5Info& info) {
    put(info.dtype);
    put_list(info.shape.dims());
    put_list(info.chunk);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void append(const void* from, std::size_t bytes) {
    const std::size_t had = bytes_.size();
    bytes_.resize(had + bytes);
    if (bytes > 0) std::memcpy(bytes_.data() + had, from, bytes);
  }

  std::vector<std::byte> bytes_;
};

// Takes a message apart. HDF5 may have damaged the memory of the process that wrote it, so nothing in it is trusted.
class Unpacked {
 public:
  explicit Unpacked(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  template <class T>
  T take() {
    T value;
    expect(bytes_.size() - at_ >= sizeof value);
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string take_text() {
    const std::size_t size = take_size(1);
    std::string text(reinterpret_cast<const char*>(bytes_.data() + at_), size);
    at_ += size;
    return text;
  }
  std::vector<std::int64_t> take_list() {
    std::vector<std::int64_t> list(take_size(sizeof(std::int64_t)));
    for (std::int64_t& value : list) value = take<std::int64_t>();
    return list;
  }
  Hdf5Info take_info() {
    Hdf5Info info;
    info.dtype = take<DType>();
    expect(info.dtype <= DType::U8);
    info.shape = Shape(take_list());
    info.chunk = take_list();
    expect(info.chunk.empty() || info.chunk.size() == info.shape.dims().size());
    for (const std::int64_t size : info.shape.dims()) expect(size >= 0);
    return info;
  }
  // The number of entries of a list or text, whose entries take `bytes` each.
  std::size_t take_size(std::size_t bytes) {
    const auto size = take<std::uint64_t>();
    expect(size <= (bytes_.size() - at_) / bytes);
    return size;
  }

 private:
  static void expect(bool sane) {
    if (!sane) throw Malformed();
  }

  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace lockstep::io
