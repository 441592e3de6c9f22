#include "tools/launcher/command_line.h"

#include <algorithm>
#include <string>

namespace lockstep::launcher {

int adapt_words(const CLI::App& command, int count, char** words) {
  static char np[] = "--np";
  if (count < 2 || words[1] != command.get_name()) return count;
  for (int i = 2; i < count; ++i) {
    const std::string word(words[i]);
    if (word == "--") {
      std::copy(words + i + 1, words + count, words + i);
      return count - 1;
    }
    if (!word.starts_with('-')) break;  // the program, whose words are its own
    if (word == "-np") words[i] = np;
    const CLI::Option* option = command.get_option_no_throw(words[i]);
    if (option != nullptr && option->get_items_expected_min() > 0) ++i;  // its value
  }
  return count;
}

}  // namespace lockstep::launcher
