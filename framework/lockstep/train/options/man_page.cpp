#include "lockstep/train/options/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "lockstep/core/exit_status.h"

namespace lockstep::train {
namespace {

using Lines = std::back_insert_iterator<std::string>;

// `text` as man(7) prints it letter by letter: no hyphen is a dash, no backslash and no point at the start of a line is
// an instruction.
std::string man_text(std::string_view text) {
  std::string result;
  bool starts = true;
  for (const char c : text) {
    if (starts && (c == '.' || c == '\'')) result += "\\&";
    starts = c == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

void write_option(const OptionDescription& option, Lines out) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(fmt::format("\\fB{}\\fR", man_text(name)));
  const bool has_argument = !option.argument.empty() && !option.is_positional;
  fmt::format_to(out, ".TP\n{}{}\n", fmt::join(names, ", "),
                 has_argument ? fmt::format(" \\fI{}\\fR", man_text(option.argument)) : "");
  fmt::format_to(out, "{}", option.text.empty() ? "\\&" : man_text(option.text));
  const bool are_said = std::ranges::all_of(
      option.values, [&](const std::string& value) { return option.text.find(value) != std::string::npos; });
  if (!are_said) fmt::format_to(out, " ({})", man_text(fmt::format("{}", fmt::join(option.values, ", "))));
  fmt::format_to(out, "\n");
}

// Options by their headings, in the order in which these first appear.
void write_options(const ProgramDescription& program, Lines out) {
  std::vector<std::string> groups;
  for (const OptionDescription& option : program.options) {
    if (std::ranges::find(groups, option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    if (groups.size() > 1) fmt::format_to(out, ".SS {}\n", man_text(group));
    for (const OptionDescription& option : program.options) {
      if (option.group == group) write_option(option, out);
    }
  }
}

std::string synopsis(const ProgramDescription& program) {
  std::string text = fmt::format("[\\fIOPTIONS\\fR]{}", program.commands.empty() ? "" : " \\fICOMMAND\\fR");
  const Lines out(text);
  for (const OptionDescription& option : program.options) {
    if (!option.is_positional) continue;
    const std::string name = fmt::format("\\fI{}\\fR", man_text(option.names.front()));
    fmt::format_to(out, "{}", option.is_required ? fmt::format(" {}", name) : fmt::format(" [{}]", name));
  }
  if (program.takes_command_line) fmt::format_to(out, " [\\fIWORDS\\fR ...]");
  return text;
}

// `name` is the page's, with hyphens; `command` is what is typed.
std::string page(const ProgramDescription& program, const std::string& name, const std::string& command,
                 std::string_view version, std::string_view see_also, bool with_commands) {
  std::string text;
  const Lines out(text);
  fmt::format_to(out, ".TH {} 1 \"\" \"{}\" \"Lockstep\"\n", man_text(name),
                 man_text(version.substr(0, version.find('\n'))));
  fmt::format_to(out, ".SH NAME\n{} \\- {}\n", man_text(name), man_text(program.text));
  fmt::format_to(out, ".SH SYNOPSIS\n\\fB{}\\fR {}\n", man_text(command), synopsis(program));
  fmt::format_to(out, ".SH OPTIONS\n");
  write_options(program, out);
  if (!program.commands.empty()) fmt::format_to(out, ".SH COMMANDS\n");
  for (const ProgramDescription& one : program.commands) {
    if (with_commands) {
      fmt::format_to(out, ".SS {} {} {}\n{}\n", man_text(command), man_text(one.name), synopsis(one),
                     man_text(one.text));
      for (const OptionDescription& option : one.options) write_option(option, out);
    } else {
      fmt::format_to(out, ".TP\n\\fB{}\\-{}\\fR(1)\n{}\n", man_text(name), man_text(one.name), man_text(one.text));
    }
  }
  if (!program.footer.empty()) fmt::format_to(out, ".SH NOTES\n.nf\n{}\n.fi\n", man_text(program.footer));
  fmt::format_to(out, ".SH EXIT STATUS\n");
  for (const ExitStatus& exit : kExitStatuses)
    fmt::format_to(out, ".TP\n\\fB{}\\fR\n{}\n", exit.status, man_text(exit.meaning));
  if (!see_also.empty()) fmt::format_to(out, ".SH SEE ALSO\n\\fB{}\\fR(1)\n", man_text(see_also));
  return text;
}

}  // namespace

std::string man_page(const ProgramDescription& program, std::string_view version) {
  return page(program, program.name, program.name, version, program.name == "lockstep" ? "" : "lockstep", true);
}

std::vector<std::pair<std::string, std::string>> man_pages(const ProgramDescription& program,
                                                           std::string_view version) {
  std::vector<std::pair<std::string, std::string>> pages;
  pages.emplace_back(program.name + ".1", page(program, program.name, program.name, version, "", false));
  for (const ProgramDescription& command : program.commands) {
    const std::string name = program.name + "-" + command.name;
    pages.emplace_back(name + ".1",
                       page(command, name, program.name + " " + command.name, version, program.name, false));
  }
  return pages;
}

}  // namespace lockstep::train
