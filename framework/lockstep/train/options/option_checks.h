// Checks that a text is a number, for CLI::Option::check(): each returns an empty text, or the error.
#pragma once

#include <fmt/format.h>

#include <CLI/TypeTools.hpp>
#include <charconv>
#include <limits>
#include <string>
#include <type_traits>

namespace lockstep::train {

// Checks for a whole number. CLI11 alone would read -1 as a huge unsigned number, 010 as 8, and a too large number as
// the largest one.
template <class T>
std::string whole_number(const std::string& text) {
  const std::size_t start = std::is_signed_v<T> && text.starts_with('-') ? 1 : 0;
  const bool digits = text.size() > start && text.find_first_not_of("0123456789", start) == std::string::npos;
  T value{};
  if (digits && std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc::result_out_of_range)
    return fmt::format("is {}, expected a number from {} to {}", text, std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::max());
  if (digits && (text.size() == start + 1 || text[start] != '0')) return "";
  if (digits) return fmt::format("is {}, expected a whole number without leading zeros", text);
  return fmt::format("is {}, expected a whole number{}", text, std::is_signed_v<T> ? "" : " of at least 0");
}

inline std::string any_number(const std::string& text) {
  double value = 0;
  return CLI::detail::lexical_cast(text, value) ? "" : fmt::format("is {}, expected a number", text);
}

}  // namespace lockstep::train
