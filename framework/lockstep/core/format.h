// Formats text in the language of fmt and std::format: formatted("{} of {:.3g}", 3, 0.5). The compiler checks the
// format against its arguments. The formatting itself is in format.cpp, so that this header, which nearly every source
// includes, compiles fast. Any thread may call these functions.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {

// One argument of a format: a number, a bool, a char or a view of text. A view is valid until the end of the full
// expression.
class FormatArgument {
 public:
  enum class Kind : std::uint8_t { Bool, Char, Signed, Unsigned, Float, Double, Text };

  FormatArgument(bool value) : kind_(Kind::Bool) { value_.as_unsigned = value; }
  FormatArgument(char value) : kind_(Kind::Char) { value_.as_signed = static_cast<unsigned char>(value); }
  template <std::signed_integral T>
  FormatArgument(T value) : kind_(Kind::Signed) {
    value_.as_signed = value;
  }
  template <std::unsigned_integral T>
  FormatArgument(T value) : kind_(Kind::Unsigned) {
    value_.as_unsigned = value;
  }
  FormatArgument(float value) : kind_(Kind::Float) { value_.as_float = value; }
  FormatArgument(double value) : kind_(Kind::Double) { value_.as_double = value; }
  FormatArgument(std::string_view value) : kind_(Kind::Text) { value_.as_text = {value.data(), value.size()}; }
  FormatArgument(const std::string& value) : FormatArgument(std::string_view(value)) {}
  FormatArgument(const char* value) : FormatArgument(std::string_view(value == nullptr ? "(null)" : value)) {}

  Kind kind() const { return kind_; }
  bool as_bool() const { return value_.as_unsigned != 0; }
  std::int64_t as_signed() const { return value_.as_signed; }
  std::uint64_t as_unsigned() const { return value_.as_unsigned; }
  float as_float() const { return value_.as_float; }
  double as_double() const { return value_.as_double; }
  std::string_view as_text() const { return {value_.as_text.data, value_.as_text.size}; }

  template <class T>
  static consteval Kind kind_of() {
    if constexpr (std::is_same_v<T, bool>)
      return Kind::Bool;
    else if constexpr (std::is_same_v<T, char>)
      return Kind::Char;
    else if constexpr (std::is_same_v<T, float>)
      return Kind::Float;
    else if constexpr (std::is_same_v<T, double>)
      return Kind::Double;
    else if constexpr (std::signed_integral<T>)
      return Kind::Signed;
    else if constexpr (std::unsigned_integral<T>)
      return Kind::Unsigned;
    else {
      static_assert(std::is_convertible_v<const T&, std::string_view>,
                    "a format takes numbers, bool, char and text; convert this argument first");
      return Kind::Text;
    }
  }

 private:
  union {
    std::int64_t as_signed;
    std::uint64_t as_unsigned;
    float as_float;
    double as_double;
    struct {
      const char* data;
      std::size_t size;
    } as_text;
  } value_;
  Kind kind_;
};

// If a format does not fit its arguments, the compiler reports a call of this function, which is not a constant
// expression.
void format_does_not_fit(const char* reason);

// Fails to compile unless `format` has a field for each of the kinds, and each field's type suits its argument.
consteval void check_format(std::string_view format, std::initializer_list<FormatArgument::Kind> kinds) {
  using enum FormatArgument::Kind;
  std::size_t fields = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] == '}') {
      if (++i == format.size() || format[i] != '}') format_does_not_fit("'}' without '{'; a brace is written twice");
    }
    if (format[i] != '{') continue;
    if (++i == format.size()) format_does_not_fit("'{' without '}'");
    if (format[i] == '{') continue;
    if (fields == kinds.size()) format_does_not_fit("more fields than arguments");
    const FormatArgument::Kind kind = kinds.begin()[fields++];
    if (format[i] != ':' && format[i] != '}') format_does_not_fit("fields have no numbers and no names");
    char type = 0;
    for (; i < format.size() && format[i] != '}'; ++i) {
      type = format[i];
      if (type != '{') continue;  // a width or precision that is an argument
      if (fields == kinds.size()) format_does_not_fit("more fields than arguments");
      if (kinds.begin()[fields] != Signed && kinds.begin()[fields] != Unsigned)
        format_does_not_fit("a width is no integer");
      ++fields;
      if (++i == format.size() || format[i] != '}') format_does_not_fit("'{' without '}'");
    }
    if (i == format.size()) format_does_not_fit("'{' without '}'");
    const bool letter = (type >= 'a' && type <= 'z') || (type >= 'A' && type <= 'Z');
    if (!letter) continue;
    const bool number = type == 'd' || type == 'x' || type == 'X' || type == 'b' || type == 'o';
    const bool real =
        type == 'e' || type == 'f' || type == 'g' || type == 'E' || type == 'F' || type == 'G' || type == 'a';
    const bool fits = kind == Text                      ? type == 's'
                      : kind == Float || kind == Double ? real
                      : kind == Char                    ? type == 'c' || number
                      : kind == Bool                    ? type == 's' || number
                                                        : type == 'c' || number;
    if (!fits) format_does_not_fit("the field's type does not suit its argument");
  }
  if (fields != kinds.size()) format_does_not_fit("more arguments than fields");
}

// A string literal that is a format for arguments of these types.
template <class... Args>
class FormatString {
 public:
  template <class Literal>
  requires std::convertible_to<const Literal&, std::string_view>
  consteval FormatString(const Literal& literal) : text_(literal) {
    check_format(text_, {FormatArgument::kind_of<Args>()...});
  }
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

template <class... Args>
using FormatFor = FormatString<std::remove_cvref_t<Args>...>;  // arguments are deduced from themselves, not from this

// Formats arguments that were checked against the format.
std::string format_arguments(std::string_view format, std::initializer_list<FormatArgument> arguments);

// Returns the formatted text.
template <class... Args>
std::string formatted(FormatFor<std::type_identity_t<Args>...> format, const Args&... args) {
  return format_arguments(format.text(), {args...});
}

// The texts of a range's elements with `separator` between them: joined(std::array{1, 2}, ", ") is "1, 2".
template <class Range>
std::string joined(const Range& range, std::string_view separator) {
  std::string text;
  bool first = true;
  for (const auto& element : range) {
    text += format_arguments(first ? "{1}" : "{0}{1}", {separator, element});
    first = false;
  }
  return text;
}

}  // namespace lockstep
