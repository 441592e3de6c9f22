// Lets ranks of MPICH over UCX give their core to others while they wait, for machines with fewer cores than ranks:
//   cc -O2 -shared -fPIC -o mpich_yield.so scripts/mpich_yield.c -ldl
//   LD_PRELOAD=$PWD/mpich_yield.so mpirun -n 8 ...
// MPICH 4.0 asks UCX for progress again and again, without end. This function takes the place of UCX's of that name.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void* worker) {
  enum { kPatience = 50 };  // calls without progress before the core is given away
  static unsigned (*progress)(void*);
  static _Thread_local unsigned idle;
  if (progress == 0) *(void**)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
  if (progress == 0)  // an interpreter has loaded MPI for one of its own libraries alone
    *(void**)&progress = dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD), "ucp_worker_progress");
  const unsigned events = progress(worker);
  idle = events == 0 ? idle + 1 : 0;
  if (idle > kPatience) sched_yield();
  return events;
}
