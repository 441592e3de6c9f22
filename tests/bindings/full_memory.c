/* /dev/shm without room is an error of the trainer's creation, or a trainer by messages, and never a signal later. Under
 * mpirun, in full_memory.sh's own /dev/shm, which rank 0 fills. C99 and POSIX. */
#define _GNU_SOURCE  // NOLINT(bugprone-reserved-identifier): the C library reads it
#include <dlfcn.h>
#include <fcntl.h>
#include <lockstep_c_mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "expect.h"

static int room_is_stale;

/* In place of the system's functions, also for Lockstep and MPI: what they would have said before rank 0 took the room. */
int statvfs(const char* restrict path, struct statvfs* restrict status) {
  int (*const original)(const char*, struct statvfs*) = (int (*)(const char*, struct statvfs*))dlsym(RTLD_NEXT, "statvfs");
  const int result = original(path, status);
  if (room_is_stale) status->f_bfree = status->f_bavail = status->f_blocks;
  return result;
}
int statfs(const char* path, struct statfs* status) {
  int (*const original)(const char*, struct statfs*) = (int (*)(const char*, struct statfs*))dlsym(RTLD_NEXT, "statfs");
  const int result = original(path, status);
  if (room_is_stale) status->f_bfree = status->f_bavail = status->f_blocks;
  return result;
}

/* Leaves room for MPI's own small messages. */
static void fill(void) {
  struct statvfs status;
  const int file = open("/dev/shm/other-process", O_CREAT | O_WRONLY, 0600);
  EXPECT(file >= 0 && statvfs("/dev/shm", &status) == 0);
  EXPECT(posix_fallocate(file, 0, (off_t)(status.f_bavail * status.f_frsize) - (12 << 20)) == 0);
  close(file);
}

static int create(lockstep_model* model, int32_t messages, lockstep_trainer** trainer) {
  lockstep_trainer_options options = LOCKSTEP_TRAINER_OPTIONS_INIT;
  options.batch = 8;
  options.messages = messages;
  return lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, trainer);
}

static void trains(lockstep_trainer* trainer) {
  static double x[4 * 1024], y[4 * 1024];
  lockstep_array in = LOCKSTEP_ARRAY_INIT;
  in.data = x;
  in.rank = 2;
  in.extent[0] = 4;
  in.extent[1] = 1024;
  lockstep_array out = in;
  out.data = y;
  for (int i = 0; i < 4 * 1024; ++i) x[i] = y[i] = 0.001 * (i % 7);
  for (int n = 0; n < 2; ++n) EXPECT(lockstep_trainer_step(trainer, &in, &out, 1e-3, NULL) == LOCKSTEP_OK);
}

/* Whether the system fetches pages when asked to; QEMU says yes and does nothing. */
static int populates(void) {
  const int populate_write = 23; /* Linux 5.14; older headers do not have it */
  const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char resident = 0;
  void* page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page != MAP_FAILED && madvise(page, bytes, populate_write) == 0 && mincore(page, bytes, &resident) == 0 && (resident & 1) != 0;
}

/* With the word "probe": whether this system can be tested. */
int main(int argc, char** argv) {
  int all = 0;
  lockstep_model* model = NULL;
  lockstep_trainer* trainer = NULL;
  if (argc > 1 && strcmp(argv[1], "probe") == 0) return !populates();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  EXPECT(lockstep_model_create("{\"input\": [1024], \"output\": [1024], \"type\": \"f64\", \"layers\": ["
                               "{\"type\": \"Linear\", \"in\": 1024, \"out\": 1024}]}", &model) == LOCKSTEP_OK);
  if (rank == 0) fill();
  MPI_Barrier(MPI_COMM_WORLD);
  /* The room is taken between its measurement and its use. */
  room_is_stale = 1;
  EXPECT(create(model, 0, &trainer) == LOCKSTEP_ERROR_MEMORY && trainer == NULL);
  EXPECT(strstr(lockstep_last_error(), "in /dev/shm, which could not be reserved: No space left on device") != NULL);
  EXPECT(create(model, 1, &trainer) == LOCKSTEP_OK);
  trains(trainer);
  lockstep_trainer_free(trainer);
  /* It is known to be taken. */
  room_is_stale = 0;
  EXPECT(create(model, 0, &trainer) == LOCKSTEP_OK);
  trains(trainer);
  lockstep_trainer_free(trainer);
  lockstep_model_free(model);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0;
}
