#include "lockstep/kernels/native/pointwise.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "lockstep/core/parallel_for.h"

namespace lockstep::vector {
namespace {

constexpr std::int64_t kBlock = 512;  // elements; sixteen registers of f32 fill a first-level cache of 32 KiB

}  // namespace

BroadcastMap::BroadcastMap(const Shape& from, const Shape& to, std::int64_t elements) {
  single_ = from.elements() == 1 && elements != 1;
  if (from == to || single_) return;
  std::int64_t stride = 1;
  for (int i = 0; i < to.rank(); ++i) {  // from the innermost dimension on
    const std::int64_t size = to[to.rank() - 1 - i];
    const std::int64_t own = i < from.rank() ? from[from.rank() - 1 - i] : 1;
    if (size == 1) continue;
    const std::int64_t step = own == 1 ? 0 : stride;
    const bool joins = !runs_.empty() && (runs_.back().stride == 0) == (step == 0) &&
                       (step == 0 || step == runs_.back().size * runs_.back().stride);
    if (joins) {
      runs_.back().size *= size;
    } else {
      runs_.push_back({size, step});
    }
    stride *= own;
  }
  if (runs_.size() == 1 && runs_[0].stride == 1) runs_.clear();
}

template <class Copy>
void BroadcastMap::for_runs(std::int64_t begin, std::int64_t count, const Copy& copy) const {
  for (std::int64_t at = 0; at < count;) {
    std::int64_t rest = begin + at, from = 0, length = 0;
    for (std::size_t d = 0; d < runs_.size(); ++d) {
      const std::int64_t i = rest % runs_[d].size;
      rest /= runs_[d].size;
      from += i * runs_[d].stride;
      if (d == 0) length = std::min(runs_[0].size - i, count - at);
    }
    copy(at, length, runs_[0].stride, from);
    at += length;
  }
}

PointwiseKernel::PointwiseKernel(const pointwise::Expression& expression, std::span<const Shape> inputs,
                                 const Shape& output, std::int64_t elements, DType dtype, const VectorKernels& kernels)
    : program_(expression), elements_(elements), dtype_(dtype), kernels_(kernels) {
  for (const Shape& shape : inputs) inputs_.emplace_back(shape, output, elements);
}

void PointwiseKernel::run(const Arguments& a) {
  if (dtype_ == DType::F64) return run_as<double, double>(a, kernels_.pointwise_f64);
  dtype_ == DType::BF16 ? run_as<float, Bf16>(a, kernels_.pointwise_f32)
                        : run_as<float, float>(a, kernels_.pointwise_f32);
}

template <class T, class Stored>
void PointwiseKernel::run_as(const Arguments& a, const PointwiseTable<T>& table) const {
  const std::int64_t blocks = (elements_ + kBlock - 1) / kBlock;
  const auto work = kBlock * static_cast<std::int64_t>(program_.instructions().size());
  parallel_for(blocks, work, [&](std::int64_t begin, std::int64_t end) {
    run_blocks<T, Stored>(a, table, begin * kBlock, std::min(end * kBlock, elements_));
  });
}

template <class T, class Stored>
void PointwiseKernel::run_blocks(const Arguments& a, const PointwiseTable<T>& table, std::int64_t begin,
                                 std::int64_t end) const {
  using Program = PointwiseProgram;
  constexpr bool kConverts = !std::is_same_v<T, Stored>;
  alignas(64) T registers[Program::kRegisters][kBlock];
  int taken = program_.registers();
  // Constants and single elements fill a register once; other inputs that do not lie as the output does get one to be
  // filled for each block.
  std::array<const T*, Program::kRegisters> constants{};
  for (std::size_t k = 0; k < program_.constants().size(); ++k) {
    T* const r = registers[taken++];
    std::fill_n(r, kBlock, static_cast<T>(program_.constants()[k]));
    constants[k] = r;
  }
  const auto widened = [&](const Stored* from) {
    T value;
    if constexpr (kConverts) {
      kernels_.convert.to_f32(1, from, &value);
    } else {
      value = *from;
    }
    return value;
  };
  std::array<const T*, Program::kInputs> inputs{};
  std::array<T*, Program::kInputs> own{};
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    if (!kConverts && inputs_[k].whole() && !inputs_[k].single()) continue;
    own[k] = registers[taken++];
    inputs[k] = own[k];
    if (inputs_[k].single()) std::fill_n(own[k], kBlock, widened(a.in<Stored>(k)));
  }
  const auto& instructions = program_.instructions();
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = std::min(kBlock, end - at);
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      const Stored* const source = a.in<Stored>(k);
      if (inputs_[k].single()) continue;
      if (!inputs_[k].whole()) {
        inputs_[k].for_runs(at, n, [&](std::int64_t i, std::int64_t count, std::int64_t stride, std::int64_t from) {
          if (stride == 0) {
            std::fill_n(own[k] + i, count, widened(source + from));
          } else if constexpr (kConverts) {
            kernels_.convert.to_f32(count, source + from, own[k] + i);
          } else {
            std::copy_n(source + from, count, own[k] + i);
          }
        });
      } else if constexpr (kConverts) {
        kernels_.convert.to_f32(n, source + at, own[k]);
      } else {
        inputs[k] = source + at;
      }
    }
    Stored* const out = a.out<Stored>(0) + at;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Program::Instruction& instruction = instructions[i];
      std::array<const T*, 3> x{};
      for (std::size_t k = 0; k < 3; ++k) {
        const Program::Operand o = instruction.operands[k];
        const auto index = static_cast<std::size_t>(o.index);
        if (o.kind == Program::Operand::Kind::Input) x[k] = inputs[index];
        if (o.kind == Program::Operand::Kind::Constant) x[k] = constants[index];
        if (o.kind == Program::Operand::Kind::Register) x[k] = registers[index];
      }
      T* y = registers[instruction.result];
      if constexpr (!kConverts) {
        if (i + 1 == instructions.size()) y = out;  // which may be one of the inputs: none is read after this
      }
      table.run[static_cast<std::size_t>(instruction.code)](n, x[0], x[1], x[2], y);
      if constexpr (kConverts) {
        if (i + 1 == instructions.size()) kernels_.convert.to_bf16(n, y, out);
      }
    }
  }
}

}  // namespace lockstep::vector
