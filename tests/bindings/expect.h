/* Expectations of the test programs in C: each that does not hold is printed with its rank, and counted. */
#ifndef LOCKSTEP_TESTS_EXPECT_H
#define LOCKSTEP_TESTS_EXPECT_H

#include <lockstep_c.h>
#include <stdio.h>
#include <string.h>

static int rank, failures;

#define EXPECT(condition)                                                                                           \
  do {                                                                                                              \
    if (!(condition)) {                                                                                             \
      fprintf(stderr, "rank %d, line %d: %s; last error: %s\n", rank, __LINE__, #condition, lockstep_last_error()); \
      ++failures;                                                                                                   \
    }                                                                                                               \
  } while (0)

/* Whether the last error says this. */
#define SAYS(part) (strstr(lockstep_last_error(), (part)) != NULL)

#endif
