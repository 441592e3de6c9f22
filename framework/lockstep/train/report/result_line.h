// The result of a command as a line of JSON on standard output, for programs that read it (--json).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep::train {

// Returns the line without its end; of a text that is not UTF-8, wrong bytes are replaced.
std::string result_text(const nlohmann::ordered_json& result);
// Prints the line. The caller flushes standard output and looks for its errors.
void print_result(const nlohmann::ordered_json& result);
// Prints the line or, for people, the sentence.
void print_answer(bool as_json, const nlohmann::ordered_json& result, const std::string& sentence);

}  // namespace lockstep::train
