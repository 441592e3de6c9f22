#include "lockstep/train/options/flat_toml.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 60;
  return text.size() <= kMost ? std::string(text) : fmt::format("{}...", text.substr(0, kMost));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

void append_utf8(std::uint32_t code, std::string& text) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(static_cast<std::uint8_t>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);  // the byte order mark of some editors
  }

  std::vector<TomlEntry> entries() {
    std::vector<TomlEntry> all;
    while (skip_to_text()) all.push_back(entry());
    return all;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(fmt::format("line {}: {}", line_, fmt::format(format, std::forward<Args>(args)...)));
  }

  char next() const { return rest_.empty() ? '\n' : rest_.front(); }
  std::string_view line_left() const { return rest_.substr(0, rest_.find('\n')); }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size())); }

  // Skips blanks, comments and ends of lines; returns false at the end of the file.
  bool skip_to_text() {
    for (skip_blanks(); !rest_.empty(); skip_blanks()) {
      if (next() == '#') rest_.remove_prefix(line_left().size());
      if (rest_.empty() || next() != '\n') return !rest_.empty();
      rest_.remove_prefix(1);
      ++line_;
    }
    return false;
  }

  TomlEntry entry() {
    TomlEntry found{.line = line_};
    if (next() == '[')
      refuse("section {}, expected only keys: an option file has no sections", shortened(trimmed(line_left())));
    found.key = key();
    name_ = shortened(found.key);
    skip_blanks();
    if (next() == '[') {
      found.values = list();
    } else if (is_quote()) {
      found.values = {{quoted("key " + name_), true}};
    } else {
      found.values = bare(line_left());
    }
    skip_blanks();
    if (next() != '\n' && next() != '#')
      refuse("key {}: '{}' follows its value, expected the end of the line", name_, shortened(trimmed(line_left())));
    return found;
  }

  // Reads a key and the equals sign after it.
  std::string key() {
    const std::string_view line = line_left();
    const bool in_quotes = is_quote();
    std::string found;
    if (in_quotes) {
      found = quoted("the key");
    } else {
      found = trimmed(line.substr(0, line.find_first_of("=#")));
      rest_.remove_prefix(std::min(line.find_first_of("=#"), line.size()));
    }
    skip_blanks();
    if (next() != '=') refuse("'{}' has no value, expected KEY = VALUE", shortened(trimmed(line)));
    rest_.remove_prefix(1);
    if (found.empty()) refuse("'{}' has no key, expected KEY = VALUE", shortened(trimmed(line)));
    return found;
  }

  bool is_quote() const { return next() == '"' || next() == '\''; }

  std::string quoted(const std::string& what) {
    const char quote = next();
    if (rest_.substr(0, 3) == std::string(3, quote)) refuse("{}: a text of several lines, expected one line", what);
    rest_.remove_prefix(1);
    std::string text;
    while (next() != quote) {
      if (next() == '\n') refuse("{}: a text without its closing {}", what, quote);
      if (quote == '"' && next() == '\\') {
        escaped(what, text);
      } else {
        text += next();
        rest_.remove_prefix(1);
      }
    }
    rest_.remove_prefix(1);
    return text;
  }

  void escaped(const std::string& what, std::string& text) {
    constexpr std::string_view kNames = "btnfr\"\\", kMeanings = "\b\t\n\f\r\"\\";
    const char name = rest_.size() > 1 ? rest_[1] : '\n';
    if (const std::size_t at = kNames.find(name); at != kNames.npos) {
      text += kMeanings[at];
      rest_.remove_prefix(2);
      return;
    }
    const std::size_t digits = name == 'u' ? 4 : name == 'U' ? 8 : 0;
    const std::string_view number = rest_.substr(std::min<std::size_t>(2, rest_.size()), digits);
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), code, 16);
    const bool whole = digits > 0 && number.size() == digits && error == std::errc() && end == number.end();
    if (!whole || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      refuse("{}: '{}' in a text, expected \\\\ for a backslash, or \\\" \\n \\t \\uXXXX", what,
             shortened(rest_.substr(0, std::min<std::size_t>(2, line_left().size()))));
    append_utf8(code, text);
    rest_.remove_prefix(2 + digits);
  }

  // Reads the values up to a comment or the end of the line.
  std::vector<TomlValue> bare(std::string_view line) {
    const std::string_view text = trimmed(line.substr(0, line.find('#')));
    if (text.starts_with('{')) refuse("key {}: a table, expected one value, or a list in brackets", name_);
    std::vector<TomlValue> words;
    constexpr std::string_view kBetween = " \t\r,";
    for (std::size_t at = 0; (at = text.find_first_not_of(kBetween, at)) != text.npos;) {
      const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
      words.push_back({std::string(text.substr(at, end - at))});
      at = end;
    }
    if (words.empty()) refuse("key {} has no value, expected KEY = VALUE", name_);
    rest_.remove_prefix(std::min(line.find('#'), line.size()));
    return words;
  }

  std::vector<TomlValue> list() {
    std::vector<TomlValue> values;
    rest_.remove_prefix(1);
    while (true) {
      if (!skip_to_text()) refuse("key {}: a list without its closing ]", name_);
      if (next() == ']') break;
      if (next() == '[' || next() == '{') refuse("key {}: a list or table in a list, expected values", name_);
      if (is_quote()) {
        values.push_back({quoted("key " + name_), true});
      } else {
        const std::string_view line = line_left();
        const std::size_t end = std::min(line.find_first_of(",]#"), line.size());
        values.push_back({std::string(trimmed(line.substr(0, end)))});
        if (values.back().text.empty()) refuse("key {}: a list without a value before '{}'", name_, next());
        rest_.remove_prefix(end);
      }
      if (!skip_to_text()) continue;
      if (next() == ',')
        rest_.remove_prefix(1);
      else if (next() != ']')
        refuse("key {}: '{}' in a list, expected , or ]", name_, shortened(trimmed(line_left())));
    }
    rest_.remove_prefix(1);
    return values;
  }

  std::string_view rest_;
  std::int64_t line_ = 1;
  std::string name_;  // the present key
};

}  // namespace

std::vector<TomlEntry> parse_flat_toml(std::string_view text) { return Reader(text).entries(); }

}  // namespace lockstep::train
