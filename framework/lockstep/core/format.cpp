#include "lockstep/core/format.h"

#include <fmt/args.h>
#include <fmt/format.h>

namespace lockstep {

std::string format_arguments(std::string_view format, std::initializer_list<FormatArgument> arguments) {
  using enum FormatArgument::Kind;
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  store.reserve(arguments.size(), 0);
  for (const FormatArgument& argument : arguments) {
    switch (argument.kind()) {
      case Bool:
        store.push_back(argument.as_bool());
        break;
      case Char:
        store.push_back(static_cast<char>(argument.as_signed()));
        break;
      case Signed:
        store.push_back(argument.as_signed());
        break;
      case Unsigned:
        store.push_back(argument.as_unsigned());
        break;
      case Float:
        store.push_back(argument.as_float());
        break;
      case Double:
        store.push_back(argument.as_double());
        break;
      case Text:
        store.push_back(argument.as_text());
        break;
    }
  }
  return fmt::vformat({format.data(), format.size()}, store);
}

}  // namespace lockstep
