// The state of a callback: a few named values, which the metadata of a checkpoint contain and which a resumed run gets
// back (Callback::save_state(), Callback::load_state()). A value comes back with the same bits.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace lockstep::train {

class CallbackState {
 public:
  using Value = std::variant<std::int64_t, double, std::string>;
  using Values = std::map<std::string, Value, std::less<>>;
  static constexpr std::size_t kMostValues = 64, kLongestName = 64, kLongestText = 1024;  // names and texts in bytes

  // Sets a value: an integer, a number, which may be infinite or NaN, or a text in UTF-8. Throws Error for an empty or
  // too long name, a text that is too long or not UTF-8, and for too many values.
  void set(std::string name, Value value);

  // Return a value. Throw Error if the value is missing, has another type or is out of its range.
  std::int64_t integer(std::string_view name, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  const Values& values() const { return values_; }
  bool operator==(const CallbackState&) const = default;

 private:
  const Value& value(std::string_view name) const;

  Values values_;
};

// States by the names that callbacks declare (CallbackNeeds::state).
using CallbackStates = std::map<std::string, CallbackState, std::less<>>;
inline constexpr std::size_t kMostCallbackStates = 64;

}  // namespace lockstep::train
