#include "lockstep/launch/located_json.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "lockstep/core/error.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSite = "json";
constexpr std::size_t kDeepest = 32;

// The text that the parser has read, by lines. The parser reads one character beyond a number: a line counts from its
// first character that is no blank, so a line end behind a number is not yet another line.
struct Position {
  std::int64_t line = 1, ends = 0;
  void pass(char c) {
    if (c == '\n') ++ends;
    if (c != '\n' && c != ' ' && c != '\t' && c != '\r') line = 1 + ends;
  }
};

class CountingIterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  CountingIterator(const char* at, Position* position) : at_(at), position_(position) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    position_->pass(*at_++);
    return *this;
  }
  CountingIterator operator++(int) { return std::exchange(*this, ++CountingIterator(*this)); }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  Position* position_;
};

// The parser's events. A value goes into the innermost list or object that is open.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Kind = LocatedJson::Kind;

  explicit Builder(const Position& position) : position_(position) {}

  LocatedJson take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

  bool null() override { return value(Kind::Null, ""); }
  bool boolean(bool set) override { return value(Kind::Bool, set ? "true" : "false"); }
  bool number_integer(number_integer_t number) override { return value(Kind::Number, std::to_string(number)); }
  bool number_unsigned(number_unsigned_t number) override { return value(Kind::Number, std::to_string(number)); }
  bool number_float(number_float_t, const string_t& text) override { return value(Kind::Number, text); }
  bool string(string_t& text) override { return value(Kind::Text, text); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Kind::Object); }
  bool start_array(std::size_t) override { return open(Kind::List); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (open_.back().find(name) != nullptr)
      return refuse(formatted("'{}' is there twice in one object, expected once", name.substr(0, 80)));
    names_.back() = name;
    return true;
  }
  bool parse_error(std::size_t, const std::string& token, const nlohmann::json::exception&) override {
    return refuse(formatted("no JSON from '{}' on; expected a rank table as JSON, whole", token.substr(0, 40)));
  }

 private:
  bool refuse(const std::string& problem) {
    if (problem_.empty()) problem_ = formatted("{}: {}", position_.line, problem);
    return false;
  }
  bool value(Kind kind, const std::string& text) { return put({.kind = kind, .line = position_.line, .text = text}); }
  bool open(Kind kind) {
    if (open_.size() >= kDeepest) return refuse(formatted("more than {} levels, expected fewer", kDeepest));
    open_.push_back({.kind = kind, .line = position_.line});
    names_.emplace_back();
    return true;
  }
  bool close() {
    LocatedJson done = std::move(open_.back());
    open_.pop_back();
    names_.pop_back();
    return put(std::move(done));
  }
  bool put(LocatedJson value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().kind == Kind::List) {
      open_.back().items.push_back(std::move(value));
    } else {
      open_.back().members.emplace_back(names_.back(), std::move(value));
    }
    return true;
  }

  const Position& position_;
  LocatedJson root_;
  std::vector<LocatedJson> open_;
  std::vector<std::string> names_;  // of the member that is being read, for each of open_
  std::string problem_;
};

}  // namespace

const LocatedJson* LocatedJson::find(std::string_view name) const {
  const auto found =
      std::ranges::find(members, name, [](const auto& member) -> std::string_view { return member.first; });
  return found == members.end() ? nullptr : &found->second;
}

LocatedJson parse_located_json(std::string_view text, const std::string& file) {
  Position position;
  Builder builder(position);
  const bool whole = nlohmann::json::sax_parse(CountingIterator(text.data(), &position),
                                               CountingIterator(text.data() + text.size(), &position), &builder);
  check(whole, kSite, "{}:{}", file, builder.problem().empty() ? "1: no JSON" : builder.problem());
  return builder.take();
}

}  // namespace lockstep::launch
