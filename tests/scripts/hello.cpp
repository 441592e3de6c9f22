/// A rank that says who it is: one line with rank, size, local rank and size, host and the thread settings it was
/// given, then a sum over all ranks that must come out right. With an argument it exits with that status.
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace {

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "unset";
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
  int local_rank = 0;
  int local_size = 0;
  MPI_Comm_rank(local, &local_rank);
  MPI_Comm_size(local, &local_size);
  MPI_Comm_free(&local);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  std::printf(
      "hello rank=%d size=%d local_rank=%d local_size=%d host=%s cpus=%ld threads=%s proc_bind=%s interface=%s "
      "preload=%s\n",
      rank, size, local_rank, local_size, host.data(), cpus, setting("OMP_NUM_THREADS"), setting("OMP_PROC_BIND"),
      setting("OMPI_MCA_btl_tcp_if_include"), setting("LD_PRELOAD"));
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (sum != size * (size - 1) / 2) {
    std::printf("hello rank=%d: sum over ranks is %d, expected %d\n", rank, sum, size * (size - 1) / 2);
    return 1;
  }
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
