// `lockstep completion` and `lockstep man`.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/train/options/completion.h"
#include "lockstep/train/options/man_page.h"
#include "tools/commands.h"
#include "tools/usage.h"

namespace lockstep::tools {
namespace {

constexpr const char* kVersion = "lockstep (Lockstep " LOCKSTEP_VERSION ")";
constexpr const char* kCompletionHelp = R"help(Examples:
  eval "$(lockstep completion bash)"                                          this shell
  lockstep completion bash >~/.local/share/bash-completion/completions/lockstep
  lockstep completion fish >~/.config/fish/completions/lockstep.fish
  train_resnet --completion bash                                              of a training program)help";

// An option that is an argument with a place of its own, and has names too ("weights,--weights"), as two of them.
void separate_names(train::ProgramDescription& program) {
  std::vector<train::OptionDescription> options;
  for (train::OptionDescription& option : program.options) {
    if (!option.is_positional || option.names.size() < 2) {
      options.push_back(std::move(option));
      continue;
    }
    train::OptionDescription named = option;
    named.is_positional = named.is_required = false;
    named.names.erase(named.names.begin());
    option.names.resize(1);
    options.push_back(std::move(option));
    options.push_back(std::move(named));
  }
  program.options = std::move(options);
}

// The program as a user types it, wherever its file lies.
train::ProgramDescription described(const CLI::App& app) {
  train::ProgramDescription description = train::describe(app);
  description.name = "lockstep";
  separate_names(description);
  for (train::ProgramDescription& command : description.commands) separate_names(command);
  return description;
}

// And `lockstep help`, which main() reads before the parser, and which has no page.
train::ProgramDescription completed(const CLI::App& app) {
  train::ProgramDescription description = described(app);
  description.commands.push_back({.name = "help", .text = "Show the help of this command, or of the one named here"});
  return description;
}

void print_page(const train::ProgramDescription& program, const std::string& command) {
  const std::vector<std::pair<std::string, std::string>> pages = train::man_pages(program, kVersion);
  const std::string name = fmt::format("lockstep-{}.1", command);
  const auto found = std::ranges::find(pages, name, &std::pair<std::string, std::string>::first);
  check_usage([&] { check(found != pages.end(), "man", "there is no command '{}'", command); });
  fmt::print("{}", found->second);
}

void write_pages(const train::ProgramDescription& program, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, text] : train::man_pages(program, kVersion)) {
    const std::filesystem::path path = folder / name;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text << std::flush;
    check(file.good(), "man", "{} cannot be written", path.string());
  }
}

}  // namespace

void add_completion_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "Print the script with which a shell completes this command");
  command->footer(kCompletionHelp);
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "The shell")
      ->check(CLI::IsMember(std::vector<std::string>(train::kShellNames.begin(), train::kShellNames.end())))
      ->required();
  command->callback([shell, &app] {
    const std::string text = train::completion(completed(app), train::shell_named(*shell));
    fmt::print("{}", text);
  });
}

void add_man_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("man", "Print the manual page of this command, or write those of all commands");
  command->footer("Examples:\n  lockstep man | man -l -\n  lockstep man run | man -l -      the page of one command");
  auto name = std::make_shared<std::string>();
  command->add_option("command", *name, "The command whose page is printed; without one, the page of lockstep");
  auto folder = std::make_shared<std::string>();
  command->add_option("--output", *folder, "A folder for lockstep.1, lockstep-run.1 and the others")->type_name("DIR");
  command->callback([folder, name, command, &app] {
    if (!name->empty()) {
      print_page(described(app), *name);
      return;
    }
    if (command->count("--output") == 0) {
      fmt::print("{}", train::man_page(described(app), kVersion));
      return;
    }
    check(!folder->empty(), "man", "--output is empty, expected a folder");
    write_pages(described(app), *folder);
  });
}

}  // namespace lockstep::tools
