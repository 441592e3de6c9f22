// The stack machine that reads a pickle, for the part of the format in pickle.h. Internal to data/datasets.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::datasets {

struct PickleValue {
  enum class Kind : std::uint8_t { None, Integer, Text, Tuple, List, Dict, Global, Dtype, Array };
  static constexpr std::array<const char*, 9> kNames{"None",   "a number", "a text",  "a tuple", "a list",
                                                     "a dict", "a name",   "a dtype", "an array"};
  Kind kind = Kind::None;
  std::int64_t integer = 0;
  std::string_view text{};           // of a text; "module name" of a Global; the elements of an Array
  std::vector<std::size_t> items{};  // numbers of values: elements; keys and values in turn; the shape of an Array

  const char* kind_name() const { return kNames[static_cast<std::size_t>(kind)]; }
};

// Runs a pickle. All values are in one list and refer to each other by number, because a list may be filled after it
// was put into another. One thread. Throws Error with the offset where the pickle cannot be read.
class PickleMachine {
 public:
  static constexpr std::size_t kMostValues = 2'000'000;  // CIFAR-100 has some 160,000
  using Kind = PickleValue::Kind;

  PickleMachine(const std::string& name, std::span<const std::uint8_t> bytes) : name_(name), bytes_(bytes) {}

  // Runs the whole pickle and returns the number of its value.
  std::size_t run();

  const PickleValue& value(std::size_t number) const { return values_[number]; }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    fail(name_, "not a usable pickle: offset {}: {}", opcode_at_, what);
  }

  std::span<const std::uint8_t> take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      fail(name_, "truncated: offset {}: expected {} bytes of a pickle, the file has {} left", at_, count,
           bytes_.size() - at_);
    }
    const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }
  template <class T>
  T number() {  // little-endian
    T value = 0;
    int shift = 0;
    for (const std::uint8_t byte : take(sizeof(T))) {
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(byte) << shift));
      shift += 8;
    }
    return value;
  }
  std::string_view text(std::uint64_t count) {
    const auto taken = take(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  std::string_view line() {
    const std::size_t begin = at_;
    while (number<std::uint8_t>() != '\n') {
    }
    return {reinterpret_cast<const char*>(bytes_.data()) + begin, at_ - begin - 1};
  }

  void push(PickleValue value) {
    if (values_.size() == kMostValues) wrong(formatted("more than {} values", kMostValues));
    values_.push_back(std::move(value));
    stack_.push_back(values_.size() - 1);
  }
  std::size_t pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() == marks_.back()))
      wrong("an opcode needs a value, but the stack is empty");
    const std::size_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<std::size_t> pop_to_mark() {
    if (marks_.empty()) wrong("an opcode needs a mark, but there is none");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<std::size_t> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }
  std::vector<std::size_t> pop_items(std::size_t count) {
    std::vector<std::size_t> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  PickleValue& top(Kind kind) {
    const std::size_t number = pop();
    stack_.push_back(number);
    if (values_[number].kind != kind)
      wrong(formatted("{} where {} is expected", values_[number].kind_name(), PickleValue{.kind = kind}.kind_name()));
    return values_[number];
  }
  const PickleValue& item(const PickleValue& of, std::size_t i, Kind kind) const {
    if (i >= of.items.size() || values_[of.items[i]].kind != kind)
      wrong(formatted("item {} of {} is not {}", i, of.kind_name(), PickleValue{.kind = kind}.kind_name()));
    return values_[of.items[i]];
  }

  bool constant(std::uint8_t opcode);

  bool container(std::uint8_t opcode);

  bool memory(std::uint8_t opcode);

  bool object(std::uint8_t opcode);

  void call();

  // Sets the state of an array: version, shape, dtype, whether it is column-major, bytes. The state of a dtype is
  // ignored, as it does not matter for single bytes.
  void build();

  std::string_view keep(std::string text) {
    kept_bytes_ += text.size();
    if (kept_bytes_ > bytes_.size())
      wrong("texts longer than the file");  // a short file may repeat one text very often
    return kept_.emplace_back(std::move(text));
  }

  const std::string& name_;
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0, opcode_at_ = 0;
  std::vector<PickleValue> values_;
  std::vector<std::size_t> stack_, marks_;
  std::unordered_map<std::uint64_t, std::size_t> memo_;
  std::deque<std::string> kept_;  // texts that are not in the file as they are
  std::size_t kept_bytes_ = 0;
};

}  // namespace lockstep::datasets
