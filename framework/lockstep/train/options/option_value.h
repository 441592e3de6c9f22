// The typed variables that options set. An enumeration can be an option if it has names:
//
//   template <>
//   struct lockstep::train::Choices<Stem> {
//     static constexpr std::array kAll{NamedValue{Stem::Cifar, "cifar"}, NamedValue{Stem::ImageNet, "imagenet"}};
//   };
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace lockstep::train {

template <class E>
struct NamedValue {
  E value;
  std::string_view name;
};
// The rule that C++20 implies; compilers before clang 17 want it written.
template <class E>
NamedValue(E, std::string_view) -> NamedValue<E>;
template <class E>
struct Choices;  // one specialisation for each enumeration that an option sets

// Returns the name of an enumeration's value on the command line; "?" for a value without a name.
template <class E>
constexpr std::string_view choice_name(E value) {
  for (const auto& each : Choices<E>::kAll) {
    if (each.value == value) return each.name;
  }
  return "?";
}

// A reference to a variable of any enumeration with Choices; the variable must outlive this object.
class Choice {
 public:
  template <class E>
  requires std::is_enum_v<E>
  explicit Choice(E* variable)
      : variable_(variable),
        names_([] {
          std::vector<std::string_view> names;
          for (const auto& each : Choices<E>::kAll) names.push_back(each.name);
          return names;
        }),
        name_([](const void* from) { return choice_name(*static_cast<const E*>(from)); }),
        set_([](void* to, std::string_view name) {
          for (const auto& each : Choices<E>::kAll) {
            if (each.name != name) continue;
            *static_cast<E*>(to) = each.value;
            return true;
          }
          return false;
        }) {}

  std::vector<std::string_view> names() const { return names_(); }
  std::string_view name() const { return name_(variable_); }
  bool set(std::string_view name) const { return set_(variable_, name); }  // false: the enumeration has no such name

 private:
  void* variable_;
  std::vector<std::string_view> (*names_)();
  std::string_view (*name_)(const void*);
  bool (*set_)(void*, std::string_view);
};

// A flag that sets a variable to false, such as --no-share-weights.
struct Negated {
  bool* variable;
  bool value() const { return !*variable; }
};

using OptionValue = std::variant<bool*, Negated, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                                 std::filesystem::path*, std::vector<double>*, Choice>;

template <class T>
OptionValue option_value(T& variable) {
  if constexpr (std::is_enum_v<T>) {
    return Choice(&variable);
  } else {
    return &variable;
  }
}

}  // namespace lockstep::train
