// The part that data sets of text share: the fields of a sample, and the tokens of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

// Tokens of bytes are their values; this one stands between documents.
inline constexpr std::int32_t kEndOfText = 256;

// The fields "tokens" and "targets", I32 (context), and "bytes", I32 (). Throws Error at `site` for a context that is
// not from 1 to 2^20.
std::vector<data::Field> text_fields(std::string_view site, std::int64_t context);

// Writes the fields of the sample with these tokens, one more than its context; the targets stand for `bytes` bytes.
void write_text_sample(std::span<const std::int32_t> tokens, std::int64_t bytes, std::span<std::byte* const> out);

double in_bits(double nats);

}  // namespace lockstep::datasets
