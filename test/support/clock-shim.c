/*
 * Preloaded into a redis-server: its wall clock is ahead by the first number in the file $CLOCK_SHIM, or stands at the second, if there is
 * one. Both are microseconds, and are read at every call.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *numbers;

__attribute__((constructor)) static void open_offset(void) {
  const char *path = getenv("CLOCK_SHIM");
  int file = path ? open(path, O_RDONLY) : -1;
  void *page = file < 0 ? MAP_FAILED : mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) {
    numbers = page;
  }
  if (file >= 0) {
    close(file);
  }
}

/* A bare system call: looking the real function up may allocate, and the allocator asks for the time. */
int clock_gettime(clockid_t clock, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, clock, at);
  if (!failed && numbers && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    int64_t us = numbers[1] ? numbers[1] : at->tv_sec * INT64_C(1000000) + at->tv_nsec / 1000 + numbers[0];
    at->tv_sec = us / 1000000;
    at->tv_nsec = us % 1000000 * 1000;
  }
  return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) {
    *at = now.tv_sec;
  }
  return now.tv_sec;
}
