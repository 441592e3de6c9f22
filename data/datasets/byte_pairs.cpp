#include "data/datasets/byte_pairs.h"

#include <queue>
#include <tuple>

#include "data/datasets/text_pieces.h"
#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/random.h"

namespace lockstep::datasets {

BytePairs::BytePairs(BytePairVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
  const std::string& source = vocabulary_.source;
  const auto& tokens = vocabulary_.tokens;
  const auto& merges = vocabulary_.merges;
  std::unordered_map<std::string, std::int32_t> ids;
  for (std::size_t i = 0; i < tokens.size(); ++i) ids.emplace(tokens[i], static_cast<std::int32_t>(i));
  const auto id = [&](const std::string& token, std::size_t merge) {
    const auto found = ids.find(token);
    check(found != ids.end(), source, "merge {} needs the token '{}', which the vocabulary does not have", merge + 1,
          printable(token));
    return found->second;
  };
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(std::string(1, static_cast<char>(byte)));
    check(found != ids.end(), source, "there is no token of the byte {} alone, expected one of each byte", byte);
    of_byte_.push_back(found->second);
  }
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right] = merges[i];
    const std::int32_t result = id(left + right, i);
    check(result != vocabulary_.end_of_text, source,
          "merge {} makes '{}', the end of a document, expected merges of text alone", i + 1, left + right);
    // Of a merge that is there twice the last one counts, as in GPT-2's encoder and Hugging Face's tokenizers.
    merges_.insert_or_assign(pair_of(id(left, i), id(right, i)),
                             Merge{.rank = static_cast<std::int64_t>(i), .result = result});
  }
}

const BytePairs::Merge* BytePairs::merge_of(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

// A list of neighbours, and a queue of the pairs that can be joined; a pair in the queue whose tokens have changed
// since is passed over.
void BytePairs::encode_piece(std::string_view piece, std::vector<std::int32_t>& tokens) const {
  struct Part {
    std::int32_t token;
    std::ptrdiff_t before, behind;  // -1: none
  };
  using Joint = std::tuple<std::int64_t, std::ptrdiff_t, std::int32_t, std::int32_t>;  // rank, left part, both tokens
  std::vector<Part> parts;
  std::priority_queue<Joint, std::vector<Joint>, std::greater<>> joints;
  const auto offer = [&](std::ptrdiff_t left) {
    if (left < 0 || parts[static_cast<std::size_t>(left)].behind < 0) return;
    const std::int32_t a = parts[static_cast<std::size_t>(left)].token;
    const std::int32_t b = parts[static_cast<std::size_t>(parts[static_cast<std::size_t>(left)].behind)].token;
    if (const Merge* merge = merge_of(a, b)) joints.emplace(merge->rank, left, a, b);
  };
  const auto size = std::ssize(piece);
  for (std::ptrdiff_t i = 0; i < size; ++i)
    parts.push_back(
        {of_byte_[static_cast<unsigned char>(piece[static_cast<std::size_t>(i)])], i - 1, i + 1 < size ? i + 1 : -1});
  for (std::ptrdiff_t i = 0; i + 1 < size; ++i) offer(i);
  while (!joints.empty()) {
    const auto [rank, left, a, b] = joints.top();
    joints.pop();
    Part& part = parts[static_cast<std::size_t>(left)];
    if (part.token != a || part.behind < 0) continue;
    Part& next = parts[static_cast<std::size_t>(part.behind)];
    if (next.token != b) continue;
    part.token = merge_of(a, b)->result;
    next.token = -1;  // no longer a part
    part.behind = next.behind;
    if (part.behind >= 0) parts[static_cast<std::size_t>(part.behind)].before = left;
    offer(part.before);
    offer(left);
  }
  for (std::ptrdiff_t i = size > 0 ? 0 : -1; i >= 0; i = parts[static_cast<std::size_t>(i)].behind)
    tokens.push_back(parts[static_cast<std::size_t>(i)].token);
}

void BytePairs::encode(std::string_view text, std::vector<std::int32_t>& tokens) const {
  constexpr std::size_t kRemembered = 1 << 16;  // pieces
  std::unordered_map<std::string_view, std::vector<std::int32_t>> known;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, next_piece(text));
    text.remove_prefix(piece.size());
    auto found = known.find(piece);
    if (found == known.end()) {
      std::vector<std::int32_t> made;
      encode_piece(piece, made);
      if (known.size() >= kRemembered) known.clear();
      found = known.emplace(piece, std::move(made)).first;
    }
    tokens.insert(tokens.end(), found->second.begin(), found->second.end());
  }
}

std::string_view BytePairs::text(std::int32_t token) const {
  check(token >= 0 && token < size(), "tokenizer", "{} is no token, expected 0 to {}", token, size() - 1);
  if (token == end_of_text()) return {};
  return vocabulary_.tokens[static_cast<std::size_t>(token)];
}

std::string BytePairs::identity() const {
  std::uint64_t hash = mix(vocabulary_.tokens.size(), static_cast<std::uint64_t>(end_of_text()));
  const auto add = [&](const std::string& text) { hash = mix(hash, hash_name(text)); };
  for (const std::string& token : vocabulary_.tokens) add(token);
  for (const auto& [left, right] : vocabulary_.merges) {
    add(left);
    add(right);
  }
  return formatted("{:016x}", hash);
}

std::string BytePairs::describe() const {
  return formatted("{} byte pairs by {} merges of {}", size(), vocabulary_.merges.size(), vocabulary_.source);
}

}  // namespace lockstep::datasets
