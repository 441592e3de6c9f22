// The option --model of a program: the names of a table's models, and what they are. An entry has a name and a
// description, and the options that only some models read in `reads`.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/error.h"

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

// Throws Error at site "options" for an option with another value than its default that the chosen model does not read.
template <class Table, class T>
void check_is_read(const Table& table, std::string_view model, std::string_view option, const T& value,
                   const T& standard) {
  if (value == standard) return;
  std::string readers;
  for (const auto& entry : table) {
    if (std::ranges::find(entry.reads, option) == entry.reads.end()) continue;
    if (entry.name == model) return;
    readers.append(readers.empty() ? "" : ", ").append(entry.name);
  }
  fail("options", "--{} is {}, which --model {} does not read; it is for {}", option, value, model, readers);
}

}  // namespace lockstep::models
