#include "lockstep/train/options/options_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace lockstep::train {
namespace {

struct ToJson {
  nlohmann::json operator()(const Negated& flag) const { return flag.value(); }
  nlohmann::json operator()(const Choice& choice) const { return choice.name(); }
  nlohmann::json operator()(const std::filesystem::path* path) const { return path->string(); }
  template <class T>
  nlohmann::json operator()(const T* variable) const {
    return *variable;
  }
};

}  // namespace

nlohmann::json to_json(std::span<const OptionRow> rows) {
  nlohmann::json json = nlohmann::json::object();
  for (const OptionRow& row : rows) json[row.name] = std::visit(ToJson{}, row.value);
  return json;
}

nlohmann::json to_json(const Options& options) {
  Options written = options;
  return to_json(option_rows(written));
}

std::string canonical(const Options& options, std::string_view program) {
  Options written = options;
  std::vector<OptionRow> rows = option_rows(written);
  std::erase_if(rows, [](const OptionRow& row) { return row.per_node; });
  nlohmann::json json = to_json(rows);
  json.update(nlohmann::json::parse(program));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // paths need not be UTF-8
}

std::vector<std::string> differences(std::string_view canonical_there, std::string_view canonical_here,
                                     std::string_view there, std::string_view here) {
  const nlohmann::json left = nlohmann::json::parse(canonical_there);
  const nlohmann::json right = nlohmann::json::parse(canonical_here);
  nlohmann::json keys = left;
  keys.update(right);
  const auto text = [](const nlohmann::json& json, const std::string& key) {
    return json.contains(key) ? json.at(key).dump() : "not an option";
  };
  std::vector<std::string> lines;
  for (const auto& item : keys.items()) {
    const std::string a = text(left, item.key()), b = text(right, item.key());
    if (a != b) lines.push_back(fmt::format("--{}: {} {}, {} {}", item.key(), a, there, b, here));
  }
  return lines;
}

}  // namespace lockstep::train
