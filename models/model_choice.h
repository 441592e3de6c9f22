// The option --model of a program: the names of a table's models, and what they are. An entry has a name and a
// description.
#pragma once

#include <string>
#include <vector>

namespace lockstep::models {

template <class Table>
std::vector<std::string> model_names(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.name);
  return names;
}

// "the network: unet (...); fno (...)".
template <class Table>
std::string model_text(const Table& table) {
  std::string text;
  for (const auto& entry : table) {
    text += text.empty() ? "the network: " : "; ";
    text.append(entry.name).append(" (").append(entry.description).append(")");
  }
  return text;
}

}  // namespace lockstep::models
