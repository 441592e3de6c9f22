// Reads the members of a JSON object: each with its type, each known. Errors are CodedError
// (LOCKSTEP_ERROR_ARGUMENT) with the path in the description.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "bindings/c/failure.h"
#include "lockstep/core/shape.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::bindings {

[[noreturn]] inline void fail_description(const std::string& where, const std::string& text) {
  throw CodedError(LOCKSTEP_ERROR_ARGUMENT, formatted("[description] {}: {}", where, text));
}

// Parses JSON text that a program or a file gave.
inline nlohmann::json parse_json(const char* text, const std::string& where) {
  if (text == nullptr) fail_description(where, "the text is null, expected JSON");
  try {
    nlohmann::json json = train::parse_json(text);
    if (!json.is_discarded()) return json;
    json = nlohmann::json::parse(text);  // says where the text is wrong
  } catch (const nlohmann::json::exception& error) {
    fail_description(where, formatted("the text is no JSON: {}", error.what()));
  }
  fail_description(where, "the text is nested too deeply, expected at most 64 levels");
}

class JsonReader {
 public:
  // `object` must outlive this reader.
  JsonReader(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail_description(where_, formatted("found {}, expected an object", object.dump()));
  }

  const std::string& where() const { return where_; }
  bool has(const std::string& key) const { return object_.contains(key); }
  const nlohmann::json& member(const std::string& key) {
    known_.insert(key);
    if (!has(key)) fail_description(where_, formatted("'{}' is missing", key));
    return object_.at(key);
  }

  // A member of type T: std::int64_t, double, bool, std::string or std::vector<std::int64_t>.
  template <class T>
  T get(const std::string& key) {
    const nlohmann::json& value = member(key);
    if (!is<T>(value)) fail_description(where_, formatted("'{}' is {}, expected {}", key, value.dump(), expected<T>()));
    return value.get<T>();
  }
  template <class T>
  T get(const std::string& key, T otherwise) {
    known_.insert(key);
    return has(key) ? get<T>(key) : otherwise;
  }
  Shape shape(const std::string& key) { return Shape(get<std::vector<std::int64_t>>(key)); }

  // Throws if the object has a member that nobody has asked for.
  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (known_.contains(key)) continue;
      std::string names;
      for (const std::string& name : known_) names = names.empty() ? name : formatted("{}, {}", names, name);
      fail_description(where_, formatted("unknown member '{}', there are: {}", key, names));
    }
  }

 private:
  template <class T>
  static bool is(const nlohmann::json& value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value.is_boolean();
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      return value.is_number_integer();
    } else if constexpr (std::is_same_v<T, double>) {
      return value.is_number();
    } else if constexpr (std::is_same_v<T, std::string>) {
      return value.is_string();
    } else {
      if (!value.is_array()) return false;
      for (const nlohmann::json& each : value) {
        if (!each.is_number_integer()) return false;
      }
      return true;
    }
  }
  template <class T>
  static const char* expected() {
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_same_v<T, std::int64_t>) return "an integer";
    if constexpr (std::is_same_v<T, double>) return "a number";
    if constexpr (std::is_same_v<T, std::string>) return "a text";
    return "a list of integers";
  }

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> known_;
};

}  // namespace lockstep::bindings
