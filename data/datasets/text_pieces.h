// The pieces into which text is cut before byte pairs are joined: those of GPT-2's expression
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// with the letters, numbers and spaces of Unicode 14. A byte that belongs to no UTF-8 sequence is neither of these.
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::datasets {

// Returns the number of bytes of the first piece of a text that is not empty.
std::size_t next_piece(std::string_view text);

bool is_letter(std::uint32_t code_point);  // Unicode's categories L
bool is_number(std::uint32_t code_point);  // Unicode's categories N

}  // namespace lockstep::datasets
