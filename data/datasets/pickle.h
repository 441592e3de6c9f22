// Reads the part of Python's pickle format (protocols 2 to 4) that CIFAR's Python version uses: a dict of texts,
// numbers, lists, tuples and NumPy arrays of bytes. Nothing in the file is executed: a name other than those by which
// NumPy rebuilds such an array is an error. Errors name the file, the offset and the expectation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::datasets {

class PickleMachine;
struct PickleValue;

struct PickledArray {
  std::vector<std::int64_t> shape{};         // row-major
  std::span<const std::uint8_t> elements{};  // as many as the shape has; owned by the PickledDict
};

// A dict that was read from a pickle. Immutable: any thread may read it.
class PickledDict {
 public:
  // Reads `bytes`, the whole file; `name` is its name in errors. Throws Error for a pickle that cannot be read.
  PickledDict(std::string name, std::vector<std::uint8_t> bytes);
  ~PickledDict();
  PickledDict(const PickledDict&) = delete;
  PickledDict& operator=(const PickledDict&) = delete;

  // Return the value of a key. Throw Error if there is no such key or if its value is of another kind.
  std::vector<std::int64_t> integers(std::string_view key) const;
  PickledArray array(std::string_view key) const;

 private:
  const PickleValue& find(std::string_view key) const;

  std::string name_;
  std::vector<std::uint8_t> bytes_;
  std::unique_ptr<PickleMachine> machine_;
  const PickleValue* root_ = nullptr;  // of the machine
};

}  // namespace lockstep::datasets
