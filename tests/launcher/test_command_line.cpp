// Forms of the command line of `lockstep launch` that CLI11 does not take by itself.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/launcher/command_line.h"

namespace lockstep::launcher {
namespace {

using CommandWords = std::vector<std::string>;

CommandWords adapted(CommandWords words) {
  CLI::App app;
  CLI::App* command = app.add_subcommand("launch", "");
  std::string text;
  bool flag = false;
  command->add_option("-n,--np", text);
  command->add_option("-H,--host", text);
  command->add_flag("--tag-output", flag);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  const int count = adapt_words(*command, static_cast<int>(words.size()), pointers.data());
  return {pointers.begin(), pointers.begin() + count};
}

TEST(CommandLine, AMarkBeforeTheProgramIsTaken) {
  EXPECT_EQ(adapted({"lockstep", "launch", "--np", "2", "--", "p", "-x"}),
            (CommandWords{"lockstep", "launch", "--np", "2", "p", "-x"}));
  EXPECT_EQ(adapted({"lockstep", "launch", "--np=2", "--tag-output", "-Ha:2", "--", "p", "--", "x"}),
            (CommandWords{"lockstep", "launch", "--np=2", "--tag-output", "-Ha:2", "p", "--", "x"}))
      << "the second one is the program's";
}

TEST(CommandLine, TheProgramsWordsAreItsOwn) {
  for (const CommandWords& words :
       {CommandWords{"lockstep", "launch", "-H", "a:2", "p", "-np", "--", "x"},
        CommandWords{"lockstep", "launch", "-H", "--", "p"}, CommandWords{"lockstep", "run", "--", "-np", "2"},
        CommandWords{"lockstep"}, CommandWords{"lockstep", "launch"}})
    EXPECT_EQ(adapted(words), words);
}

TEST(CommandLine, HorovodrunsNumberOfRanks) {
  EXPECT_EQ(adapted({"lockstep", "launch", "-np", "2", "p", "-np"}),
            (CommandWords{"lockstep", "launch", "--np", "2", "p", "-np"}));
}

}  // namespace
}  // namespace lockstep::launcher
