#include "lockstep/kernels/common/attention.h"

#include "lockstep/core/error.h"

namespace lockstep::kernels {
namespace {

void require_range(const AttentionGeometry& g, int input, const std::int32_t* values, std::string_view what,
                   std::int64_t last, std::string_view reason) {
  for (std::int64_t n = 0; n < g.samples; ++n) {
    if (values[n] >= 0 && values[n] <= last) continue;
    const std::string path = g.path.empty() ? "" : g.path + ": ";
    const std::string& field =
        g.fields.size() > static_cast<std::size_t>(input) ? g.fields[static_cast<std::size_t>(input)] : std::string();
    const std::string named = field.empty() ? formatted("the {}", what) : formatted("'{}'", field);
    throw SampleError(formatted("[attention] {}{} of ", path, named), n,
                      formatted(" is {}, expected 0 to {}: {}", values[n], last, reason));
  }
}

}  // namespace

AttentionGeometry::AttentionGeometry(const KernelRequest& r, const AttentionAttributes& a)
    : AttentionSizes(a, r.inputs), options(a), path(r.path), fields(r.fields) {
  if (a.alibi) slopes = alibi_slopes(heads);
  int at = a.packed ? 1 : 3;
  if (a.lengths) inputs.lengths = at++;
  if (a.segments) inputs.segments = at++;
  if (a.offset) inputs.offset = at++;
  if (a.dropout > 0) {
    inputs.step = at++;
    inputs.ids = at++;
  }
  inputs.result = at;
}

AttentionRun::AttentionRun(const AttentionGeometry& g, const Arguments& a) : g_(g) {
  const auto ints = [&](int input) {
    return input < 0 ? nullptr : a.in<std::int32_t>(static_cast<std::size_t>(input));
  };
  lengths_ = ints(g.inputs.lengths);
  segments_ = ints(g.inputs.segments);
  offsets_ = ints(g.inputs.offset);
  if (lengths_) require_range(g, g.inputs.lengths, lengths_, "length", g.keys, formatted("there are {} keys", g.keys));
  if (offsets_)
    require_range(g, g.inputs.offset, offsets_, "offset", g.keys - g.queries,
                  formatted("{} queries stand among {} keys", g.queries, g.keys));
  if (g.options.dropout > 0) {
    step_ = static_cast<std::uint64_t>(*a.in<std::int64_t>(static_cast<std::size_t>(g.inputs.step)));
    ids_ = a.in<std::int64_t>(static_cast<std::size_t>(g.inputs.ids));
  }
}

}  // namespace lockstep::kernels
