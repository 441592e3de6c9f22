// A pointwise expression as instructions on registers, each of which holds a block of elements.
#pragma once

#include <array>
#include <vector>

#include "lockstep/ops/pointwise/function.h"

namespace lockstep::kernels {

class PointwiseProgram {
 public:
  // Fusion makes no expression that needs more than kRegisters registers, counting one for each input and constant, so
  // that blocks stay long. Other expressions may need up to kMost registers; kernels check that.
  static constexpr int kRegisters = 16, kMost = 256;

  // An operand: an input, a constant, or a register.
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
