// A pointwise expression as instructions on registers, each of which holds a block of elements.
#pragma once

#include <array>
#include <vector>

#include "lockstep/ops/pointwise/function.h"

namespace lockstep {

class PointwiseProgram {
 public:
  static constexpr int kRegisters = 16, kInputs = 12;

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
  // Whether an expression needs no more registers and inputs than there are: inputs may take a register each, too.
  static bool fits(const pointwise::Expression& expression);

  // At least one; the last one makes the result.
  const std::vector<Instruction>& instructions() const { return instructions_; }
  const std::vector<double>& constants() const { return constants_; }
  int registers() const { return registers_; }  // 0 to registers() - 1

 private:
  std::vector<Instruction> instructions_;
  std::vector<double> constants_;
  int registers_ = 0;
};

}  // namespace lockstep
