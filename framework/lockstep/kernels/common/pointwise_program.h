// A pointwise expression as instructions on registers, each of which holds a block of elements.
#pragma once

#include <array>
#include <vector>

#include "lockstep/ops/pointwise/function.h"

namespace lockstep::kernels {

class PointwiseProgram {
 public:
  // What a joined expression needs at most, inputs and constants included, which may take a register each: blocks are
  // long then. Others may need more, up to kMost, which kernels check.
  static constexpr int kRegisters = 16, kMost = 256;

  // Where an operand is: an input as it is given, a constant, or a register.
  struct Operand {
    enum class Kind : std::uint8_t { None, Input, Constant, Register };
    Kind kind = Kind::None;
    int index = 0;
  };
  struct Instruction {
    pointwise::Code code;
    std::array<Operand, 3> operands;
    int result;  // register
  };

  explicit PointwiseProgram(const pointwise::Expression& expression);
  // Whether it needs no more than kRegisters.
  static bool fits(const pointwise::Expression& expression);

  // At least one; the last one makes the result.
  const std::vector<Instruction>& instructions() const { return instructions_; }
  const std::vector<double>& constants() const { return constants_; }
  int registers() const { return registers_; }  // of results: 0 to registers() - 1
  int needed() const { return registers_ + inputs_ + static_cast<int>(constants_.size()); }

 private:
  std::vector<Instruction> instructions_;
  std::vector<double> constants_;
  int registers_ = 0, inputs_;
};

}  // namespace lockstep::kernels
