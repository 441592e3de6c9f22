#include "data/datasets/text_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/datasets/field_options.h"
#include "data/datasets/text_sample.h"
#include "lockstep/core/error.h"
#include "lockstep/data/file_pattern.h"
#include "lockstep/data/file_source.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kTextDatasetSite = "options";

}  // namespace

TextTokens::TextTokens(const std::vector<std::filesystem::path>& files, std::unique_ptr<Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {
  std::vector<std::int32_t> tokens;
  for (const std::filesystem::path& file : files) {
    tokens.assign(1, tokenizer_->end_of_text());
    tokenizer_->encode_documents(data::read_text(file), tokens);
    files_ = files_.empty() ? file.string() : files_ + ", " + file.string();
    if (tokens.size() > 1) append(tokens);
  }
  check(size_ > 1, "text", "{}: there is no text in these files, expected some", files_);
  append({tokenizer_->end_of_text()});
}

void TextTokens::append(const std::vector<std::int32_t>& tokens) {
  if (tokenizer_->size() <= std::numeric_limits<std::uint16_t>::max() + 1) {
    for (const std::int32_t token : tokens) narrow_.push_back(static_cast<std::uint16_t>(token));
  } else {
    wide_.insert(wide_.end(), tokens.begin(), tokens.end());
  }
  size_ += std::ssize(tokens);
}

void TextTokens::copy(std::int64_t begin, std::span<std::int32_t> out) const {
  if (wide_.empty()) {
    std::copy_n(narrow_.begin() + begin, out.size(), out.begin());
  } else {
    std::copy_n(wide_.begin() + begin, out.size(), out.begin());
  }
}

TextDataset::TextDataset(std::shared_ptr<const TextTokens> tokens, std::int64_t context, Part part)
    : tokens_(std::move(tokens)), context_(context), part_(part), fields_(text_fields("text", context)) {}

std::string TextDataset::describe() const {
  return formatted("text: {} samples of {} tokens ({}) of {}", size(), context_, tokens_->tokenizer().describe(),
                   tokens_->files());
}

std::string TextDataset::locate(std::int64_t index) const {
  return formatted("tokens {} and on of {}", (part_.first + index) * context_, tokens_->files());
}

void TextDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(context_) + 1);
  tokens_->copy((part_.first + index) * context_, tokens);
  std::int64_t bytes = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i) bytes += tokens_->tokenizer().bytes(tokens[i]);
  write_text_sample(tokens, bytes, out);
}

namespace {

std::shared_ptr<const TextTokens> open_tokens(const TextOptions& o, const data::DatasetOptions& wanted,
                                              std::string_view option, const std::string& files) {
  auto tokens = std::make_shared<TextTokens>(data::expand_files(split_names(option, files), wanted.dir),
                                             open_tokenizer(o.vocabulary));
  check(TextDataset::samples(*tokens, o.context) >= 1, kTextDatasetSite,
        "--{} has {} tokens ({}), expected more than --context {}", option, tokens->size(),
        tokens->tokenizer().describe(), o.context);
  if (wanted.purpose != data::Purpose::Train && wanted.record != nullptr)
    check_tokenizer(kTextDatasetSite, tokens->tokenizer(), *wanted.record);
  return tokens;
}

std::unique_ptr<data::Dataset> all_of(const TextOptions& o, const std::shared_ptr<const TextTokens>& tokens) {
  const std::int64_t samples = TextDataset::samples(*tokens, o.context);
  return std::make_unique<TextDataset>(tokens, o.context, TextDataset::Part{0, samples});
}

// The record of the tokenizer, with the options that divide the text into samples (train/run/continuation.h).
std::string record_of(const TextOptions& o, const TextTokens& tokens) {
  nlohmann::json record = nlohmann::json::parse(tokenizer_record(tokens.tokenizer()));
  record["options"]["context"] = o.context;
  if (o.eval_text.empty()) record["options"]["eval-part"] = o.eval_part;
  return record.dump();
}

data::RunData open_text(const TextOptions& o, const data::DatasetOptions& wanted) {
  data::RunData data;
  if (wanted.purpose != data::Purpose::Train && !o.eval_text.empty()) {  // nothing is trained
    const auto tokens = open_tokens(o, wanted, "eval-text", o.eval_text);
    data.prediction.record = record_of(o, *tokens);
    data.train = all_of(o, tokens);
    data.eval = all_of(o, tokens);
    return data;
  }
  const auto tokens = open_tokens(o, wanted, "text", o.text);
  data.prediction.record = record_of(o, *tokens);
  if (!o.eval_text.empty()) {
    data.train = all_of(o, tokens);
    data.eval = all_of(o, open_tokens(o, wanted, "eval-text", o.eval_text));
    return data;
  }
  const std::int64_t samples = TextDataset::samples(*tokens, o.context);
  const auto held = static_cast<std::int64_t>(std::lround(o.eval_part * static_cast<double>(samples)));
  check(
      held >= 1 && held < samples, kTextDatasetSite,
      "--eval-part is {} of {} samples of --context {}, expected at least one sample each for training and evaluation",
      o.eval_part, samples, o.context);
  data.train = std::make_unique<TextDataset>(tokens, o.context, TextDataset::Part{0, samples - held});
  data.eval = std::make_unique<TextDataset>(tokens, o.context, TextDataset::Part{samples - held, held});
  return data;
}

}  // namespace

data::DatasetEntry text_entry(const TextOptions& options) {
  const auto check_options = [&options](const data::DatasetOptions& o) {
    const bool needs_text = o.purpose == data::Purpose::Train || options.eval_text.empty();
    check(!options.text.empty() || !needs_text, kTextDatasetSite,
          "--text is missing, expected files, as in --text 'books/*.txt'");
    check(options.eval_part > 0 && options.eval_part < 1, kTextDatasetSite,
          "--eval-part is {}, expected above 0 and below 1", options.eval_part);
  };
  return {.name = "text",
          .description = "files of text: --text, and --vocabulary for byte pairs",
          .ignores = {kTextIgnores.begin(), kTextIgnores.end()},
          .open_all = [&options](const data::DatasetOptions& o) { return open_text(options, o); },
          .check_options = check_options};
}

}  // namespace lockstep::datasets
