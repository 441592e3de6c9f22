#include "data/datasets/pickle.h"

#include "data/datasets/pickle_machine.h"
#include "lockstep/core/error.h"

namespace lockstep::datasets {

PickledDict::PickledDict(std::string name, std::vector<std::uint8_t> bytes)
    : name_(std::move(name)), bytes_(std::move(bytes)), machine_(std::make_unique<PickleMachine>(name_, bytes_)) {
  const PickleValue& root = machine_->value(machine_->run());
  check(root.kind == PickleValue::Kind::Dict, name_, "the pickle is {}, expected a dict", root.kind_name());
  root_ = &root;
}

PickledDict::~PickledDict() = default;

const PickleValue& PickledDict::find(std::string_view key) const {
  std::string keys;
  for (std::size_t i = 0; i + 1 < root_->items.size(); i += 2) {
    const PickleValue& name = machine_->value(root_->items[i]);
    if (name.kind != PickleValue::Kind::Text) continue;
    if (name.text == key) return machine_->value(root_->items[i + 1]);
    if (keys.size() < 200) keys += formatted("{}'{}'", keys.empty() ? "" : ", ", name.text);
  }
  fail(name_, "the dict has no key '{}', its keys are {}", key, keys.empty() ? "none" : keys);
}

std::vector<std::int64_t> PickledDict::integers(std::string_view key) const {
  const PickleValue& list = find(key);
  check(list.kind == PickleValue::Kind::List, name_, "'{}' is {}, expected a list of numbers", key, list.kind_name());
  std::vector<std::int64_t> integers;
  integers.reserve(list.items.size());
  for (const std::size_t number : list.items) {
    const PickleValue& value = machine_->value(number);
    check(value.kind == PickleValue::Kind::Integer, name_, "'{}': item {} is {}, expected a number", key,
          integers.size(), value.kind_name());
    integers.push_back(value.integer);
  }
  return integers;
}

PickledArray PickledDict::array(std::string_view key) const {
  const PickleValue& value = find(key);
  check(value.kind == PickleValue::Kind::Array && value.integer >= 0, name_, "'{}' is {}, expected an array of bytes",
        key, value.kind_name());
  PickledArray array{.elements = {reinterpret_cast<const std::uint8_t*>(value.text.data()), value.text.size()}};
  for (const std::size_t number : value.items) array.shape.push_back(machine_->value(number).integer);
  return array;
}

}  // namespace lockstep::datasets
