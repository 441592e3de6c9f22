#include "data/datasets/click_record.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kClickRecordSite = "data";
constexpr std::array<std::pair<IdMapping, std::string_view>, 3> kMappings{
    {{IdMapping::Direct, "direct"}, {IdMapping::Hash, "hash"}, {IdMapping::Vocabulary, "vocabulary"}}};

}  // namespace

std::string ClickRecord::text() const {
  const auto* const mapping = std::ranges::find(kMappings, ids.mapping, &std::pair<IdMapping, std::string_view>::first);
  return nlohmann::json{
      {"ids", {{"mapping", mapping->second}, {"fields", ids.names}, {"rows", ids.sizes}, {"places", ids.places}}},
      {"dense", dense},
      {"options", nlohmann::json::parse(options)},
      {"normalisation", nlohmann::json::parse(normalisation.text())}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ClickRecord ClickRecord::parse(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    const nlohmann::json& ids = json.at("ids");
    const auto name = ids.at("mapping").get<std::string>();
    const auto* const mapping =
        std::ranges::find(kMappings, std::string_view(name), &std::pair<IdMapping, std::string_view>::second);
    check(mapping != kMappings.end(), kClickRecordSite,
          "the checkpoint's record of its data maps ids by '{}', expected direct, hash or vocabulary", name);
    ClickRecord record{.ids = {.mapping = mapping->first,
                               .names = ids.at("fields").get<std::vector<std::string>>(),
                               .sizes = ids.at("rows").get<std::vector<std::int64_t>>(),
                               .places = ids.value("places", std::vector<std::int64_t>())},
                       .dense = json.at("dense").get<std::vector<std::string>>(),
                       .normalisation = data::Normalisation::parse(json.at("normalisation").dump()),
                       .options = json.value("options", nlohmann::json::object()).dump()};
    if (!record.ids.sizes.empty()) record.ids.check();
    return record;
  } catch (const nlohmann::json::exception& error) {
    fail(kClickRecordSite,
         "the checkpoint's record of its data cannot be used: {}; expected that of a run of this version",
         error.what());
  }
}

}  // namespace lockstep::datasets
