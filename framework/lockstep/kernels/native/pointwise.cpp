#include "lockstep/kernels/native/pointwise.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kBlock = 512;  // elements; sixteen registers of f32 fill a first-level cache of 32 KiB
constexpr std::int64_t kElements = kBlock * PointwiseProgram::kRegisters;  // of all registers

// The length of a block: shorter where there are more registers, a multiple of a cache line.
std::int64_t block_of(const PointwiseProgram& program) {
  return std::min(kBlock, kElements / program.needed() / kLanes * kLanes);
}

}  // namespace

BroadcastMap::BroadcastMap(const Shape& from, const Shape& to, std::int64_t elements) {
  single_ = from != to && from.elements() == 1 && elements != 1;  // of equal shapes the padding is copied, too
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
                                 const Shape& output, std::int64_t elements, DType dtype, const NativeKernels& kernels)
    : program_(expression), elements_(elements), dtype_(dtype), kernels_(kernels) {
  check(program_.needed() <= PointwiseProgram::kMost, "pointwise",
        "an expression needs {} registers, expected at most {}: {}", program_.needed(), PointwiseProgram::kMost,
        expression.str());
  for (const Shape& shape : inputs) inputs_.emplace_back(shape, output, elements);
}

void PointwiseKernel::run(const Arguments& a) {
  if (dtype_ == DType::F64) return run_as<double, double>(a, kernels_.pointwise_f64);
  dtype_ == DType::BF16 ? run_as<float, Bf16>(a, kernels_.pointwise_f32)
                        : run_as<float, float>(a, kernels_.pointwise_f32);
}

// The registers and operands of one thread. T is the type of arithmetic, Stored the type in memory.
template <class T, class Stored>
class PointwiseKernel::Blocks {
 public:
  Blocks(const PointwiseKernel& kernel, const Arguments& arguments, const PointwiseTable<T>& table)
      : kernel_(kernel), arguments_(arguments), table_(table), block_(block_of(kernel.program_)) {
    int taken = kernel.program_.registers();
    const std::vector<double>& constants = kernel.program_.constants();
    for (std::size_t k = 0; k < constants.size(); ++k) {
      constants_[k] = at_register(taken++);
      std::fill_n(constants_[k], block_, static_cast<T>(constants[k]));
    }
    for (std::size_t k = 0; k < kernel.inputs_.size(); ++k) {
      if (lies_as_output(k)) continue;
      own_[k] = at_register(taken++);
      inputs_[k] = own_[k];
      if (kernel.inputs_[k].single()) std::fill_n(own_[k], block_, widened(arguments.in<Stored>(k)));
    }
  }

  // Elements [at, at + n) of the output, at most a block of them.
  void run(std::int64_t at, std::int64_t n) {
    for (std::size_t k = 0; k < kernel_.inputs_.size(); ++k) load(k, at, n);
    Stored* const out = arguments_.out<Stored>(0) + at;
    const auto& instructions = kernel_.program_.instructions();
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const PointwiseProgram::Instruction& instruction = instructions[i];
      T* y = at_register(instruction.result);
      // The result may overwrite an input, which no later instruction reads.
      if constexpr (!kConverts) {
        if (i + 1 == instructions.size()) y = out;
      }
      const auto& x = instruction.operands;
      table_.run[static_cast<std::size_t>(instruction.code)](n, operand(x[0]), operand(x[1]), operand(x[2]), y);
      if constexpr (kConverts) {
        if (i + 1 == instructions.size()) kernel_.kernels_.convert.to_bf16(n, y, out);
      }
    }
  }

 private:
  static constexpr bool kConverts = !std::is_same_v<T, Stored>;

  T* at_register(int r) { return registers_ + r * block_; }
  bool lies_as_output(std::size_t k) const {
    const BroadcastMap& map = kernel_.inputs_[k];
    return !kConverts && map.whole() && !map.single();
  }
  T widened(const Stored* from) const {
    T value;
    copy(1, from, &value);
    return value;
  }
  void copy(std::int64_t n, const Stored* from, T* to) const {
    if constexpr (kConverts) {
      kernel_.kernels_.convert.to_f32(n, from, to);
    } else {
      std::copy_n(from, n, to);
    }
  }

  void load(std::size_t k, std::int64_t at, std::int64_t n) {
    const BroadcastMap& map = kernel_.inputs_[k];
    const Stored* const source = arguments_.in<Stored>(k);
    if (map.single()) return;  // filled once
    if (!map.whole()) {
      map.for_runs(at, n, [&](std::int64_t i, std::int64_t count, std::int64_t stride, std::int64_t from) {
        if (stride == 0) {
          std::fill_n(own_[k] + i, count, widened(source + from));
        } else {
          copy(count, source + from, own_[k] + i);
        }
      });
    } else if constexpr (kConverts) {
      copy(n, source + at, own_[k]);
    } else {
      inputs_[k] = source + at;
    }
  }

  const T* operand(const PointwiseProgram::Operand& o) const {
    const auto index = static_cast<std::size_t>(o.index);
    switch (o.kind) {
      case PointwiseProgram::Operand::Kind::Input:
        return inputs_[index];
      case PointwiseProgram::Operand::Kind::Constant:
        return constants_[index];
      case PointwiseProgram::Operand::Kind::Register:
        return registers_ + o.index * block_;
      case PointwiseProgram::Operand::Kind::None:
        break;
    }
    return nullptr;
  }

  const PointwiseKernel& kernel_;
  const Arguments& arguments_;
  const PointwiseTable<T>& table_;
  std::int64_t block_;
  alignas(64) T registers_[kElements];
  std::array<T*, PointwiseProgram::kMost> constants_;
  std::array<const T*, PointwiseProgram::kMost> inputs_;
  std::array<T*, PointwiseProgram::kMost> own_;  // of inputs whose elements are not read one by one
};

template <class T, class Stored>
void PointwiseKernel::run_as(const Arguments& a, const PointwiseTable<T>& table) const {
  const std::int64_t block = block_of(program_), count = (elements_ + block - 1) / block;
  const auto work = block * static_cast<std::int64_t>(program_.instructions().size());
  parallel_for(count, work, [&](std::int64_t begin, std::int64_t end) {
    Blocks<T, Stored> blocks(*this, a, table);
    for (std::int64_t at = begin * block; at < std::min(end * block, elements_); at += block)
      blocks.run(at, std::min(block, elements_ - at));
  });
}

}  // namespace lockstep::kernels::native
