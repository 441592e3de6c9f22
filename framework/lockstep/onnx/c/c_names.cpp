#include "lockstep/onnx/c/c_names.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/onnx/wire.h"

namespace lockstep::onnx {
namespace {

constexpr std::string_view kInputPrefix = "in_";

// Words between spaces that no argument of a function in a header can be called. Macros that are not written in capital
// letters count, as compilers that are not asked for a standard have them.
constexpr std::string_view kWordsOfC =
    " auto bool break case char complex const constexpr continue default do double else enum errno extern false float "
    "for goto if imaginary inline int linux long nullptr register restrict return short signed sizeof static stderr "
    "stdin stdout struct switch true typedef typeof union unix unsigned void volatile while ";
constexpr std::string_view kWordsOfCpp =
    " alignas alignof and and_eq asm assert atomic_cancel atomic_commit atomic_noexcept bitand bitor catch char16_t "
    "char32_t char8_t class co_await co_return co_yield compl concept const_cast consteval constinit decltype delete "
    "dynamic_cast explicit export far friend mutable namespace near new noexcept not not_eq operator or or_eq private "
    "protected public reflexpr reinterpret_cast requires static_assert static_cast synchronized template this "
    "thread_local throw try typeid typename using virtual wchar_t xor xor_eq ";
// Names that the header has for itself: arguments and types, and numbers of which the name of an input makes one more.
constexpr std::string_view kWordsOfHeader =
    " h int32_t model no_file no_memory ok output samples size_t wrong_id wrong_weights ";

bool is_word(std::string_view words, const std::string& word) { return words.find(" " + word + " ") != words.npos; }

std::string letters_of(const std::string& name) {
  std::string result;
  for (const char c : name) result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return result;
}

}  // namespace

std::string c_upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

void require_c_name(const std::string& name) {
  const auto allowed = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  check(!name.empty() && std::ranges::all_of(name, allowed) && std::isdigit(static_cast<unsigned char>(name[0])) == 0,
        kSite, "'{}' begins the names of functions, expected letters, digits and _ with a letter in front, as in net.c",
        name);
}

std::string c_name_of_input(const std::string& name) {
  const std::string letters = letters_of(name);
  const auto is_capital = [](char c) { return std::isupper(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  // Names of capital letters are macros', and those with such a letter or _ behind a _ are the compiler's.
  const bool is_foreign = std::ranges::all_of(letters, is_capital) || (letters[0] == '_' && is_capital(letters[1]));
  const bool taken = is_foreign || std::isdigit(static_cast<unsigned char>(letters[0])) != 0 ||
                     is_word(kWordsOfC, letters) || is_word(kWordsOfCpp, letters) || is_word(kWordsOfHeader, letters);
  return taken ? std::string(kInputPrefix) + letters : letters;
}

std::string c_argument_of_input(const std::string& name) { return std::string(kInputPrefix) + letters_of(name); }

}  // namespace lockstep::onnx
