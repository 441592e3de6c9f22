#include "lockstep/train/options/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

using Lines = std::back_insert_iterator<std::string>;

// The name of the shell function: letters, digits and underscores.
std::string function_name(const std::string& program) {
  std::string name = "_" + program;
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.' || c == '+'; }, '_');
  return name;
}

// `text` within single quotes.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c == '\n' ? ' ' : c;
    }
  }
  return result += '\'';
}

// The first sentence or so: shells show a line.
std::string short_text(std::string text) {
  constexpr std::size_t kMost = 100;
  std::ranges::replace(text, '\n', ' ');
  if (const std::size_t end = std::min(text.find("; "), text.find(". ")); end != text.npos) text.resize(end);
  if (text.size() > kMost) {
    text.resize(std::min(text.rfind(' ', kMost), kMost));
    text += " ...";
  }
  return text;
}

std::vector<std::string> flag_names(const ProgramDescription& program) {
  std::vector<std::string> names;
  for (const OptionDescription& option : program.options) {
    if (!option.is_positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

std::vector<std::string> command_names(const ProgramDescription& program) {
  std::vector<std::string> names;
  for (const ProgramDescription& command : program.commands) names.push_back(command.name);
  return names;
}

// ---- bash

// Lines of `case` for what follows an option that takes a value. `prefix` is the command, or nothing.
void bash_values(const ProgramDescription& program, const std::string& prefix, Lines out) {
  for (const OptionDescription& option : program.options) {
    if (option.argument.empty() || option.is_positional) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(fmt::format("{}:{}", prefix, name));
    std::string answer = "mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); compopt -o filenames 2>/dev/null";
    if (option.is_number) answer = ":";
    if (!option.values.empty())
      answer = fmt::format("mapfile -t COMPREPLY < <(compgen -W {} -- \"$cur\")",
                           shell_quoted(fmt::format("{}", fmt::join(option.values, " "))));
    fmt::format_to(out, "    {}) {}; return ;;\n", fmt::join(patterns, " | "), answer);
  }
}

constexpr std::string_view kBashHead =
    R"(  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} command='' options='' at
  COMPREPLY=()
  # "--name=value" comes as three words.
  if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
  for ((at = 1; at < COMP_CWORD; ++at)); do
    if [[ ${{COMP_WORDS[at]}} == -- ]]; then # another program's words
      if declare -F _command_offset >/dev/null; then _command_offset $((at + 1)); return; fi
      mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
      return
    fi
    if [[ -z $command && " {} " == *" ${{COMP_WORDS[at]}} "* ]]; then command=${{COMP_WORDS[at]}}; fi
  done
)";

constexpr std::string_view kBashTail = R"(  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
  elif [[ -z $command && -n {0} ]]; then
    mapfile -t COMPREPLY < <(compgen -W {0} -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
  fi
}}
complete -F {1} {2}
)";

std::string bash(const ProgramDescription& program) {
  std::string text;
  const Lines out(text);
  const std::string function = function_name(program.name);
  const std::string commands = fmt::format("{}", fmt::join(command_names(program), " "));
  fmt::format_to(out, "# bash completion of {}, made by the program itself\n{}() {{\n", program.name, function);
  fmt::format_to(out, fmt::runtime(kBashHead), commands.empty() ? ":" : commands);
  fmt::format_to(out, "  case $command:$prev in\n");
  bash_values(program, "", out);
  for (const ProgramDescription& command : program.commands) bash_values(command, command.name, out);
  fmt::format_to(out, "    *) ;;\n  esac\n  case $command in\n    '') options={} ;;\n",
                 shell_quoted(fmt::format("{}", fmt::join(flag_names(program), " "))));
  for (const ProgramDescription& command : program.commands)
    fmt::format_to(out, "    {}) options={} ;;\n", command.name,
                   shell_quoted(fmt::format("{}", fmt::join(flag_names(command), " "))));
  fmt::format_to(out, "    *) ;;\n  esac\n");
  fmt::format_to(out, fmt::runtime(kBashTail), shell_quoted(commands), function, program.name);
  return text;
}

// ---- zsh

// `text` where _arguments reads it: brackets and colons have a meaning there.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : short_text(text)) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_values(const OptionDescription& option) {
  if (!option.values.empty()) return fmt::format("({})", fmt::join(option.values, " "));
  return option.is_number ? " " : "_files";
}

void zsh_arguments(const ProgramDescription& program, std::string_view indent, Lines out) {
  bool has_positional = program.takes_command_line;
  fmt::format_to(out, "{}_arguments -s", indent);
  for (const OptionDescription& option : program.options) {
    has_positional = has_positional || option.is_positional;
    if (option.is_positional) continue;
    for (const std::string& name : option.names) {
      const bool is_long = name.starts_with("--");
      const std::string mark = option.argument.empty() ? "" : is_long ? "=" : "+";
      const std::string value =
          option.argument.empty() ? "" : fmt::format(":{}:{}", zsh_text(option.argument), zsh_values(option));
      const std::string spec = fmt::format("*{}{}[{}]{}", name, mark, zsh_text(option.text), value);
      fmt::format_to(out, " \\\n{}  {}", indent, shell_quoted(spec));
    }
  }
  if (has_positional) fmt::format_to(out, " \\\n{}  '*:argument:_files'", indent);
}

std::string zsh(const ProgramDescription& program) {
  std::string text;
  const Lines out(text);
  const std::string function = function_name(program.name);
  fmt::format_to(out, "#compdef {}\n# zsh completion of {}, made by the program itself\n{}() {{\n", program.name,
                 program.name, function);
  if (program.commands.empty()) {
    zsh_arguments(program, "  ", out);
    fmt::format_to(out, "\n");
  } else {
    fmt::format_to(out, "  if ((CURRENT == 2)); then\n    local -a commands\n    commands=(\n");
    for (const ProgramDescription& command : program.commands)
      fmt::format_to(out, "      {}\n", shell_quoted(command.name + ":" + zsh_text(command.text)));
    fmt::format_to(out, "    )\n    _describe command commands\n");
    zsh_arguments(program, "    ", out);
    fmt::format_to(out, "\n    return\n  fi\n  local command=$words[2]\n  shift words\n  ((CURRENT--))\n");
    fmt::format_to(out, "  case $command in\n");
    for (const ProgramDescription& command : program.commands) {
      fmt::format_to(out, "    {})\n", command.name);
      zsh_arguments(command, "      ", out);
      fmt::format_to(out, "\n      ;;\n");
    }
    fmt::format_to(out, "  esac\n");
  }
  fmt::format_to(out, "}}\nif [[ $funcstack[1] == {0} ]]; then {0} \"$@\"; else compdef {0} {1}; fi\n", function,
                 program.name);
  return text;
}

// ---- fish

// Within single quotes fish reads \' and \\ alone.
std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result += '\'';
}

void fish_options(const std::string& program, const std::string& condition,
                  const std::vector<OptionDescription>& options, Lines out) {
  for (const OptionDescription& option : options) {
    if (option.is_positional) continue;
    fmt::format_to(out, "complete -c {}{}", program, condition);
    for (const std::string& name : option.names)
      fmt::format_to(out, " {} {}", name.starts_with("--") ? "-l" : "-s", name.substr(name.starts_with("--") ? 2 : 1));
    if (!option.values.empty()) {
      fmt::format_to(out, " -x -a {}", fish_quoted(fmt::format("{}", fmt::join(option.values, " "))));
    } else if (!option.argument.empty()) {
      fmt::format_to(out, "{}", option.is_number ? " -x" : " -r");
    }
    fmt::format_to(out, " -d {}\n", fish_quoted(short_text(option.text)));
  }
}

std::string fish(const ProgramDescription& program) {
  std::string text;
  const Lines out(text);
  fmt::format_to(out, "# fish completion of {}, made by the program itself\n", program.name);
  const bool has_commands = !program.commands.empty();
  fish_options(program.name, has_commands ? " -n __fish_use_subcommand" : "", program.options, out);
  for (const ProgramDescription& command : program.commands)
    fmt::format_to(out, "complete -c {} -n __fish_use_subcommand -f -a {} -d {}\n", program.name, command.name,
                   fish_quoted(short_text(command.text)));
  for (const ProgramDescription& command : program.commands)
    fish_options(program.name, fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name), command.options, out);
  return text;
}

}  // namespace

Shell shell_named(std::string_view name) {
  const auto found = std::ranges::find(kShellNames, name);
  check(found != kShellNames.end(), "completion", "the shell is '{}', expected one of {}", name,
        fmt::format("{}", fmt::join(kShellNames, ", ")));
  return static_cast<Shell>(found - kShellNames.begin());
}

std::string completion(const ProgramDescription& program, Shell shell) {
  switch (shell) {
    case Shell::Bash:
      return bash(program);
    case Shell::Zsh:
      return zsh(program);
    case Shell::Fish:
      return fish(program);
  }
  fail("completion", "shell {}, expected one of {}", static_cast<int>(shell), kShellNames.size());
}

}  // namespace lockstep::train
