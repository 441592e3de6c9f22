#include "data/datasets/tokenizer.h"

#include <array>
#include <nlohmann/json.hpp>

#include "data/datasets/byte_pairs.h"
#include "data/datasets/text_sample.h"
#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr const char* kRecordKey = "tokenizer";

class Bytes final : public Tokenizer {
 public:
  Bytes() {
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i);
  }
  std::int64_t size() const override { return kEndOfText + 1; }
  std::int32_t end_of_text() const override { return kEndOfText; }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  }
  std::string_view text(std::int32_t token) const override {
    check(token >= 0 && token < size(), "tokenizer", "{} is no token, expected 0 to {}", token, size() - 1);
    if (token == kEndOfText) return {};
    return {&bytes_[static_cast<std::size_t>(token)], 1};
  }
  std::string describe() const override { return "bytes"; }
  std::string identity() const override { return "bytes"; }

 private:
  std::array<char, kEndOfText> bytes_{};
};

}  // namespace

std::int64_t Tokenizer::bytes(std::int32_t token) const {
  return token == end_of_text() ? 1 : static_cast<std::int64_t>(text(token).size());
}

void Tokenizer::encode_documents(std::string_view text, std::vector<std::int32_t>& tokens) const {
  for (;;) {
    const std::size_t mark = text.find(kEndMark);
    encode(text.substr(0, mark), tokens);
    if (mark == text.npos) return;
    tokens.push_back(end_of_text());
    text.remove_prefix(mark + kEndMark.size());
  }
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& vocabulary) {
  if (vocabulary.empty()) return std::make_unique<Bytes>();
  return std::make_unique<BytePairs>(read_byte_pairs(vocabulary));
}

std::string tokenizer_record(const Tokenizer& tokenizer) {
  return nlohmann::json{{kRecordKey, tokenizer.identity()}}.dump();
}

void check_tokenizer(std::string_view site, const Tokenizer& tokenizer, std::string_view record) {
  const nlohmann::json json = nlohmann::json::parse(record, nullptr, false);
  if (!json.is_object() || !json.contains(kRecordKey)) return;
  check(
      json[kRecordKey] == tokenizer.identity(), site,
      "the vocabulary ({}) is not the one with which the model was trained: its hash is {}, expected {}; has the file "
      "changed? --vocabulary names the right one",
      tokenizer.describe(), tokenizer.identity(), json[kRecordKey].dump(-1, ' ', true));
}

}  // namespace lockstep::datasets
