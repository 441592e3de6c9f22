#include "lockstep/train/report/callback_state.h"

#include <array>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::train {
namespace {

constexpr const char* kStateSite = "callback state";

constexpr std::array kTypes{"an integer", "a number", "a text"};  // by the index of a Value

template <class T>
const T& value_as(const CallbackState::Value& value, std::string_view name) {
  const T* found = std::get_if<T>(&value);
  check(found != nullptr, kStateSite, "'{}' is {}, expected {}", name, kTypes[value.index()],
        kTypes[CallbackState::Value(T()).index()]);
  return *found;
}

}  // namespace

void CallbackState::set(std::string name, Value value) {
  check(!name.empty() && name.size() <= kLongestName && is_utf8(name), kStateSite,
        "a value's name is '{}', expected 1 to {} bytes of UTF-8", printable(name.substr(0, kLongestName)),
        kLongestName);
  if (const std::string* text = std::get_if<std::string>(&value)) {
    check(text->size() <= kLongestText, kStateSite, "'{}' has {} bytes of text, expected at most {}", name,
          text->size(), kLongestText);
    check(is_utf8(*text), kStateSite, "'{}' is '{}', expected text in UTF-8", name, printable(*text));
  }
  check(values_.size() < kMostValues || values_.contains(name), kStateSite, "'{}' is one value more than the most, {}",
        name, kMostValues);
  values_.insert_or_assign(std::move(name), std::move(value));
}

const CallbackState::Value& CallbackState::value(std::string_view name) const {
  const auto found = values_.find(name);
  check(found != values_.end(), kStateSite, "there is no '{}'", name);
  return found->second;
}

std::int64_t CallbackState::integer(std::string_view name, std::int64_t least, std::int64_t most) const {
  const std::int64_t found = value_as<std::int64_t>(value(name), name);
  check(found >= least && found <= most, kStateSite, "'{}' is {}, expected {} to {}", name, found, least, most);
  return found;
}

double CallbackState::number(std::string_view name) const { return value_as<double>(value(name), name); }

const std::string& CallbackState::text(std::string_view name) const { return value_as<std::string>(value(name), name); }

}  // namespace lockstep::train
