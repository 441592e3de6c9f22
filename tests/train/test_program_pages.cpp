#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/train/options/completion.h"
#include "lockstep/train/options/man_page.h"
#include "tests/train/option_support.h"

namespace lockstep::train {
namespace {

struct SampleProgram {
  std::string name, precision, file;
  std::int64_t seed = 0;
  bool fast = false;
  CLI::App app{"Does things", "tool"};

  SampleProgram() {
    CLI::App* one = app.add_subcommand("one", "It's [the] first: of two; and more");
    one->add_option("-s,--seed", seed, "Number of a run");
    one->add_option("--precision", precision, "Type")->check(CLI::IsMember({"f32", "f64"}));
    one->add_option("file", file, "What is read")->required();
    one->add_flag("--fast", fast, ".begins with a point");
    one->add_flag("--inner", fast, "secret")->group("");
    CLI::App* two = app.add_subcommand("two", "Starts a program")->prefix_command();
    two->footer("Example: back\\slash");
    app.add_subcommand("hidden", "")->group("");
  }
};

bool has_text(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ProgramDescription, HasWhatTheParserOffersAndNothingHidden) {
  const SampleProgram sample;
  const ProgramDescription tool = describe(sample.app);
  EXPECT_EQ(tool.name, "tool");
  ASSERT_EQ(tool.commands.size(), 2u);
  EXPECT_TRUE(tool.commands[1].takes_command_line);
  const auto& options = tool.commands[0].options;
  ASSERT_EQ(options.size(), 5u);  // with --help
  EXPECT_EQ(options[1].names, (std::vector<std::string>{"-s", "--seed"}));
  EXPECT_EQ(options[1].argument, "N");
  EXPECT_TRUE(options[1].is_number);
  EXPECT_EQ(options[2].values, (std::vector<std::string>{"f32", "f64"}));
  EXPECT_TRUE(options[3].is_positional && options[3].is_required);
  EXPECT_EQ(options[3].names, std::vector<std::string>{"file"});
  EXPECT_EQ(options[4].argument, "");
}

TEST(Completion, KnowsCommandsOptionsAndTheirValues) {
  const SampleProgram sample;
  const ProgramDescription tool = describe(sample.app);
  const std::string bash = completion(tool, Shell::Bash);
  EXPECT_TRUE(has_text(bash, "complete -F _tool tool\n"));
  EXPECT_TRUE(has_text(bash, "one:--precision) mapfile -t COMPREPLY < <(compgen -W 'f32 f64' -- \"$cur\")"));
  EXPECT_TRUE(has_text(bash, "one:-s | one:--seed) :;"));
  EXPECT_TRUE(has_text(bash, "\" one two \""));
  const std::string zsh = completion(tool, Shell::Zsh);
  EXPECT_TRUE(zsh.starts_with("#compdef tool\n"));
  EXPECT_TRUE(has_text(zsh, "'*--precision=[Type]:VALUE:(f32 f64)'"));
  EXPECT_TRUE(has_text(zsh, "'one:It'\\''s \\[the\\] first\\: of two'"));
  const std::string fish = completion(tool, Shell::Fish);
  EXPECT_TRUE(has_text(fish, "-n '__fish_seen_subcommand_from one' -l precision -x -a 'f32 f64' -d 'Type'"));
  EXPECT_TRUE(has_text(fish, "-a one -d 'It\\'s [the] first: of two'"));
  for (const std::string& text : {bash, zsh, fish}) EXPECT_FALSE(has_text(text, "inner") || has_text(text, "hidden"));
}

TEST(Completion, RefusesAnUnknownShell) {
  EXPECT_EQ(shell_named("fish"), Shell::Fish);
  EXPECT_THROW(shell_named("tcsh"), Error);
}

TEST(ManPage, EscapesWhatTheFormatReads) {
  const SampleProgram sample;
  const std::string page = man_page(describe(sample.app), "tool 1.2\nmore");
  EXPECT_TRUE(page.starts_with(".TH tool 1 \"\" \"tool 1.2\" \"Lockstep\"\n"));
  EXPECT_TRUE(has_text(page, "\n\\&.begins with a point\n"));
  EXPECT_TRUE(has_text(page, "\\fB\\-\\-precision\\fR \\fIVALUE\\fR\nType (f32, f64)\n"));
  EXPECT_TRUE(has_text(page, "\\fB75\\fR\n"));
  const auto pages = man_pages(describe(sample.app), "1");
  ASSERT_EQ(pages.size(), 3u);
  EXPECT_EQ(pages[2].first, "tool-two.1");
  EXPECT_TRUE(has_text(pages[2].second, "Example: back\\eslash"));
  EXPECT_TRUE(has_text(pages[0].second, "\\fBtool\\-one\\fR(1)"));
}

TEST(ProgramPages, OfATrainingProgramHaveTheNamesThatItsOptionsAccept) {
  const Outcome bash = parse_line({"--completion", "bash"});
  EXPECT_FALSE(bash.result.proceed);
  EXPECT_EQ(bash.result.exit_code, 0);
  EXPECT_TRUE(has_text(bash.out, ":--optimizer) mapfile -t COMPREPLY < <(compgen -W 'sgd"));
  EXPECT_TRUE(has_text(bash.out, ":--depth) :;"));  // the program's own: a number
  const Outcome man = parse_line({"--man"});
  EXPECT_EQ(man.result.exit_code, 0);
  EXPECT_TRUE(has_text(man.out, ".SH EXIT STATUS\n"));
  EXPECT_EQ(parse_line({"--completion", "tcsh"}).result.exit_code, 2);
}

}  // namespace
}  // namespace lockstep::train
