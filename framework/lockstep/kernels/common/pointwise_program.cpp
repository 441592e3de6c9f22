#include "lockstep/kernels/common/pointwise_program.h"

#include <algorithm>

namespace lockstep::kernels {

using pointwise::Code;
using pointwise::Expression;
using pointwise::Term;

namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

PointwiseProgram::PointwiseProgram(const Expression& expression) : inputs_(expression.inputs()) {
  const Expression primitive = expression.primitive();
  std::vector<int> kept;
  const Expression e = primitive.compact(kept);  // used for the order of terms alone, as inputs are numbered anew
  const std::vector<Term>& terms = e.terms();
  std::vector<std::size_t> last_use(terms.size(), 0);
  for (std::size_t t = 0; t < terms.size(); ++t) {
    if (terms[t].kind != Term::Kind::Apply) continue;
    for (int k = 0; k < terms[t].function->operands; ++k) last_use[index(terms[t].operands[index(k)])] = t;
  }
  std::vector<Operand> where(terms.size());
  std::vector<int> free;
  const auto take = [&] {
    if (free.empty()) return registers_++;
    const int r = free.back();
    free.pop_back();
    return r;
  };
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Term& term = terms[t];
    if (term.kind == Term::Kind::Input) {
      where[t] = {Operand::Kind::Input, kept[index(term.input)]};
    } else if (term.kind == Term::Kind::Constant) {
      where[t] = {Operand::Kind::Constant, static_cast<int>(constants_.size())};
      constants_.push_back(term.constant);
    } else {
      Instruction instruction{term.function->code, {}, -1};
      for (int k = 0; k < term.function->operands; ++k)
        instruction.operands[index(k)] = where[index(term.operands[index(k)])];
      // An instruction may overwrite its operand, as it works element by element.
      for (int k = 0; k < term.function->operands; ++k) {
        const Operand& o = instruction.operands[index(k)];
        const bool dies = o.kind == Operand::Kind::Register && last_use[index(term.operands[index(k)])] == t;
        if (dies && std::ranges::find(free, o.index) == free.end()) free.push_back(o.index);
      }
      instruction.result = take();
      where[t] = {Operand::Kind::Register, instruction.result};
      instructions_.push_back(instruction);
    }
  }
  if (const Operand result = where[index(e.result())]; result.kind != Operand::Kind::Register) {
    instructions_.push_back({Code::Copy, {result}, take()});
  }
}

bool PointwiseProgram::fits(const Expression& expression) {
  return PointwiseProgram(expression).needed() <= kRegisters;
}

}  // namespace lockstep::kernels
