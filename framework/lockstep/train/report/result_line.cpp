#include "lockstep/train/report/result_line.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace lockstep::train {

std::string result_text(const nlohmann::ordered_json& result) {
  return result.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void print_result(const nlohmann::ordered_json& result) { fmt::print("{}\n", result_text(result)); }

void print_answer(bool as_json, const nlohmann::ordered_json& result, const std::string& sentence) {
  fmt::print("{}\n", as_json ? result_text(result) : sentence);
}

}  // namespace lockstep::train
