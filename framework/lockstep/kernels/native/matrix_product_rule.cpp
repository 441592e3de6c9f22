// GFLOP/s on one core of a Xeon with AVX-512 beside other jobs (peak 249), for (samples, out, in), forward, backward
// data, backward weights: oneDNN 2.6 with the weights' layout left to it | oneDNN with plain weights | OpenBLAS 0.3.21
// | these kernels. Backward weights of oneDNN include the gradient of the bias; OpenBLAS and these kernels do not.
//   2048,  384,  384   222 207 137 | 202 218 193 | 158 189 187 | 208 202 202
//   2048, 1152,  384   195 177 114 | 195 204 177 | 179 171 171 | 197 193 189
//   2048, 1536,  384   181 166  50 | 192 184 130 | 175 154 120 | 199 177 134
//   2048,  384, 1536   185 136 117 | 192 157 139 | 151 128 140 | 160 142 171
//   1576,  576,  192   204  92 153 | 205 228 180 | 193 180 182 | 209 199 184
//   1576,  768,  192   183  80 114 | 194 215 189 | 183 177 174 | 203 195 179
//   2048,  512,  128   198 187 137 | 177 195 157 | 165 160 153 | 191 168 170
//   2048, 8192,  384   159 121 123 | 148 149 101 | 143 123 103 | 171 140 139
//    128, 1024, 1024   186 162 186 | 172 170 191 | 148 143 165 | 174 164 186
//    128, 1024,  256   210 192 201 | 195 207 182 | 156 151 170 | 185 183 200
//     32,  512,  128   197 150 179 | 145 192 172 |  93 116 130 | 145 147 169
//     16,  120,  400   180 124 123 | 108 192 165 |  70 197 189 | 109 118 153
// With many samples these come first forward and for weights, where oneDNN's weights in blocks lose most; backward data
// is oneDNN's with plain weights, so that no direction needs a derived copy of them. With fewer, oneDNN stays first.
// Stacks of matrices are oneDNN's where it takes them. OpenBLAS is behind in f32; f64, and a level without fused
// multiply-adds, come after it.
#include "lockstep/kernels/native/native_kernels.h"
#include "lockstep/kernels/native/rows.h"
#include "lockstep/ops/linear.h"

namespace lockstep::kernels::native {

Place product_place(const KernelRequest& r) {
  constexpr std::int64_t kManySamples = 256;
  if (r.wants_portable()) return Place::First;  // at every level, as the place decides about the bits
  if (!native_fused() || r.dtype() == DType::F64) return Place::Last;
  const std::string_view op = r.op->name();
  const bool many = r.inputs[0].shape[0] >= kManySamples;
  return many && (op == "linear" || op == "linear_backward_weights") ? Place::First : Place::Behind;
}

}  // namespace lockstep::kernels::native
