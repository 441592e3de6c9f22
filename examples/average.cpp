// Reduces buffers of the program over all ranks while the program computes something else:
//   mpirun -n 4 average
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

#include "lockstep/comm/environment.h"
#include "lockstep/parallel/exchange/allreduce.h"

using namespace lockstep;

int main() {
  const comm::Environment mpi;
  const comm::Communicator world = comm::Communicator::world();
  try {
    parallel::Allreduce engine(world);  // collective; chooses the path: engine.reason()

    // Memory that all ranks of a node see is reduced in place.
    const std::span<std::byte> memory = engine.allocate(1'000'000 * sizeof(float));
    const std::span<float> field(reinterpret_cast<float*>(memory.data()), 1'000'000);
    for (float& value : field) value = static_cast<float>(world.rank()) + 1;

    // Two reductions in progress; the program does not touch their memory until they are complete.
    std::vector<double> norms{1.0 * world.rank(), 2.0};
    parallel::Handle sum = engine.iallreduce(field, comm::ReduceOp::Sum);
    parallel::Handle largest = engine.iallreduce(norms, comm::ReduceOp::Max);
    double elsewhere = 0;
    for (int i = 0; i < 1000; ++i) {
      elsewhere += std::sqrt(i);     // what else there is to compute,
      if (i % 100 == 0) sum.test();  // which lets reductions move on now and then
    }
    sum.wait();
    largest.wait();

    // Each rank gets a part of the sum alone: here of any sizes, 0 for the last ones if there are many ranks.
    std::vector<std::int64_t> counts(static_cast<std::size_t>(world.size()), 0);
    counts[0] = 10;
    if (world.size() > 1) counts[1] = 7;
    std::vector<float> all(static_cast<std::size_t>(world.size() > 1 ? 17 : 10), 1.0F);
    std::vector<float> mine(static_cast<std::size_t>(counts[static_cast<std::size_t>(world.rank())]));
    engine.reduce_scatter(all, mine, counts, comm::ReduceOp::Sum);

    if (world.is_root())
      std::printf("%s\nsum %.0f, largest %.0f, part %.0f, elsewhere %.0f\n", engine.reason().c_str(), field[0],
                  norms[0], mine[0], elsewhere);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "average: rank %d: %s\n", world.rank(), error.what());
    comm::abort_job(1);
  }
}
