// The logical dimensions of a tensor, outermost first: images are (samples, channels, height, width). Access to a
// missing dimension throws Error; so does elements() for 2^63 elements or more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace lockstep {

class Shape {
 public:
  Shape() = default;  // a scalar: no dimensions, one element
  Shape(std::initializer_list<std::int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  std::int64_t operator[](int i) const { return dims_[index(i)]; }
  std::int64_t& operator[](int i) { return dims_[index(i)]; }
  const std::vector<std::int64_t>& dims() const { return dims_; }

  std::int64_t elements() const {
    std::int64_t n = 1;
    for (std::int64_t d : dims_) {
      if (__builtin_mul_overflow(n, d, &n)) [[unlikely]]
        fail_elements();
    }
    return n;
  }
  // Whether tail() == tail; it makes no temporary.
  bool has_tail(const Shape& tail) const {
    return rank() == tail.rank() + 1 && std::equal(tail.dims_.begin(), tail.dims_.end(), dims_.begin() + 1);
  }
  // The shape of one sample: all dimensions but the first.
  Shape tail() const {
    index(0);
    return Shape(std::vector<std::int64_t>(dims_.begin() + 1, dims_.end()));
  }
  // `n` in front of these dimensions: the shape of a batch of n samples.
  Shape batched(std::int64_t n) const {
    std::vector<std::int64_t> dims{n};
    dims.insert(dims.end(), dims_.begin(), dims_.end());
    return Shape(std::move(dims));
  }
  std::string str() const {  // "(64, 3, 32, 32)"
    std::string text = "(";
    for (std::size_t i = 0; i < dims_.size(); ++i) text += (i ? ", " : "") + std::to_string(dims_[i]);
    return text + ")";
  }
  bool operator==(const Shape&) const = default;

 private:
  std::size_t index(int i) const {
    const auto at = static_cast<std::size_t>(i);  // a negative index becomes larger than any rank
    if (at >= dims_.size()) [[unlikely]]
      fail_dimension(i);
    return at;
  }
  [[noreturn]] void fail_dimension(int i) const;
  [[noreturn]] void fail_elements() const;

  std::vector<std::int64_t> dims_;
};

}  // namespace lockstep
