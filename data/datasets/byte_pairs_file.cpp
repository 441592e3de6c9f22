#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "data/datasets/byte_pairs.h"
#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/data/file_source.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kExpected =
    "expected tokenizer.json, or GPT-2's vocab.json (encoder.json) with merges.txt (vocab.bpe) beside it";

Json read_json(const fs::path& path) {
  const std::string text = data::read_text(path);
  int depth = 0;
  try {
    return Json::parse(text, [&](int level, Json::parse_event_t, Json&) {
      depth = std::max(depth, level);
      check(depth <= 64, path.string(), "values inside more than 64 others, expected a vocabulary");
      return true;
    });
  } catch (const Json::parse_error& error) {
    fail(path.string(), "no JSON at byte {} of {}: the file is damaged or cut short, {}", error.byte, text.size(),
         kExpected);
  } catch (const Json::exception& error) {  // a number that no type holds
    fail(path.string(), "no JSON that can be used: {}; {}", error.what(), kExpected);
  }
}

// GPT-2 writes bytes as visible characters: a visible byte as itself, any other byte as a
// character from U+0100 on.
std::array<std::uint32_t, 256> characters_of_bytes() {
  std::array<std::uint32_t, 256> characters{};
  std::uint32_t next = 256;
  for (std::uint32_t b = 0; b < 256; ++b) {
    const bool visible = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
    characters[b] = visible ? b : next++;
  }
  return characters;
}

// The bytes that a token's characters stand for; a token with another character, such as <|endoftext|> never has, is
// taken as it is written.
std::string bytes_of(const std::string& written) {
  static const std::array<std::uint32_t, 256> characters = characters_of_bytes();
  std::string bytes;
  for (std::size_t i = 0; i < written.size(); ++i) {
    std::uint32_t c = static_cast<unsigned char>(written[i]);
    if (c >= 0x80) {  // two bytes of UTF-8; the characters of bytes have no more
      const std::uint32_t next = i + 1 < written.size() ? static_cast<unsigned char>(written[++i]) : 0;
      if (c < 0xC2 || c >= 0xE0 || (next & 0xC0) != 0x80) return written;
      c = (c & 0x1F) << 6 | (next & 0x3F);
    }
    const auto byte = std::ranges::find(characters, c);
    if (byte == characters.end()) return written;
    bytes.push_back(static_cast<char>(byte - characters.begin()));
  }
  return bytes;
}

// Tokens by number, as they are written.
class Numbered {
 public:
  explicit Numbered(std::string file) : file_(std::move(file)) {}

  void add(const std::string& token, const Json& number) {
    constexpr std::int64_t kMost = 1 << 24;
    check(number.is_number_integer() && number.get<double>() >= 0 && number.get<double>() < kMost, file_,
          "token '{}' has the number {}, expected an integer from 0 to {}", printable(token), number.dump(), kMost - 1);
    const auto at = number.get<std::size_t>();
    if (at >= tokens_.size()) tokens_.resize(at + 1);
    check(!tokens_[at] || *tokens_[at] == token, file_, "tokens '{}' and '{}' have the same number {}",
          printable(tokens_[at].value_or("")), printable(token), at);
    tokens_[at] = token;
  }
  void add_all(const Json& vocabulary) {
    check(vocabulary.is_object() && !vocabulary.empty(), file_, "there is no object of tokens and their numbers, {}",
          kExpected);
    for (const auto& [token, number] : vocabulary.items()) add(token, number);
  }
  // Moves the tokens' bytes into `vocabulary`, and finds the end of a document.
  void put(BytePairVocabulary& vocabulary) {
    std::int32_t end = -1;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      check(tokens_[i].has_value(), file_, "there is no token {} of {}: expected numbers from 0 without holes", i,
            tokens_.size());
      const bool ends = *tokens_[i] == Tokenizer::kEndMark || (*tokens_[i] == "</s>" && end < 0);
      if (ends) end = static_cast<std::int32_t>(i);
      vocabulary.tokens.push_back(bytes_of(*tokens_[i]));
    }
    check(end >= 0, file_, "there is no token {} or </s>, expected one for the end of a document", Tokenizer::kEndMark);
    vocabulary.end_of_text = end;
  }

 private:
  std::string file_;
  std::vector<std::optional<std::string>> tokens_;
};

void add_merge(BytePairVocabulary& vocabulary, const std::string& left, const std::string& right) {
  vocabulary.merges.emplace_back(bytes_of(left), bytes_of(right));
}

// "left right"; false for another form.
bool add_merge(BytePairVocabulary& vocabulary, std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == line.npos || space == 0 || space + 1 == line.size() || line.find(' ', space + 1) != line.npos)
    return false;
  add_merge(vocabulary, std::string(line.substr(0, space)), std::string(line.substr(space + 1)));
  return true;
}

void read_merges(const fs::path& path, BytePairVocabulary& vocabulary) {
  const std::string text = data::read_text(path);
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    check(end != text.npos, path.string(), "line {} has no end: the file is cut short", number + 1);
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    begin = end + 1;
    ++number;
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    check(add_merge(vocabulary, line), path.string(), "line {} is '{}', expected two tokens with a space between them",
          number, printable(std::string(line)));
  }
}

void read_merges(const std::string& file, const Json& merges, BytePairVocabulary& vocabulary) {
  check(merges.is_array(), file, "model.merges is no list, expected pairs of tokens");
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const Json& merge = merges[i];
    bool taken = false;
    if (merge.is_string()) taken = add_merge(vocabulary, merge.get<std::string>());
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      add_merge(vocabulary, merge[0].get<std::string>(), merge[1].get<std::string>());
      taken = true;
    }
    check(taken, file, "merge {} of model.merges is {}, expected two tokens", i, merge.dump(-1, ' ', true));
  }
}

// Whether a value of tokenizer.json is of this type, or is a sequence with a part of this type.
bool has_type(const Json& value, std::string_view type, std::string_view parts) {
  if (!value.is_object()) return false;
  if (value.value("type", Json()) == type) return true;
  const Json list = value.value(parts, Json::array());
  return std::ranges::any_of(list, [&](const Json& part) { return has_type(part, type, parts); });
}

BytePairVocabulary from_tokenizer(const fs::path& path, const Json& json) {
  const std::string file = path.string();
  const Json model = json.value("model", Json::object());
  check(model.is_object() && model.contains("merges"), file, "model is no object with merges, {}", kExpected);
  const Json type = model.value("type", Json("BPE"));
  check(type == "BPE", file, "model.type is {}, expected BPE with vocab and merges", type.dump(-1, ' ', true));
  const Json cut = json.value("pre_tokenizer", Json());
  check(has_type(cut, "ByteLevel", "pretokenizers") && !has_type(cut, "Split", "pretokenizers"), file,
        "its pre_tokenizer is not GPT-2's (ByteLevel), expected a vocabulary of bytes cut as GPT-2 does");
  check(json.value("normalizer", Json()).is_null(), file, "it has a normalizer, expected none, as GPT-2's");
  BytePairVocabulary vocabulary{.source = file};
  Numbered tokens(file);
  tokens.add_all(model.value("vocab", Json()));
  const Json added = json.value("added_tokens", Json::array());
  for (const Json& token : added) {
    check(token.is_object() && token.value("content", Json()).is_string(), file, "a part of added_tokens is {}, {}",
          token.dump(-1, ' ', true), "expected an object with id and content");
    tokens.add(token["content"].get<std::string>(), token.value("id", Json()));
  }
  tokens.put(vocabulary);
  read_merges(file, model["merges"], vocabulary);
  return vocabulary;
}

fs::path beside(const fs::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::error_code error;
    if (fs::exists(folder / name, error)) return folder / name;
  }
  return {};
}

}  // namespace

BytePairVocabulary read_byte_pairs(const fs::path& path) {
  std::error_code error;
  fs::path file = path;
  if (fs::is_directory(path, error)) {
    file = beside(path, {"tokenizer.json", "vocab.json", "encoder.json"});
    check(!file.empty(), path.string(), "the folder has no vocabulary, {}", kExpected);
  }
  const Json json = read_json(file);
  check(json.is_object(), file.string(), "it is no JSON object, {}", kExpected);
  if (json.contains("model")) return from_tokenizer(file, json);
  const fs::path merges = beside(file.parent_path(), {"merges.txt", "vocab.bpe"});
  check(!merges.empty(), file.string(), "there is no merges.txt or vocab.bpe beside it, {}", kExpected);
  BytePairVocabulary vocabulary{.source = formatted("{} and {}", file.string(), merges.filename().string())};
  Numbered tokens(file.string());
  tokens.add_all(json);
  tokens.put(vocabulary);
  read_merges(merges, vocabulary);
  return vocabulary;
}

}  // namespace lockstep::datasets
