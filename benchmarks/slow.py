"""A network file system, simulated: the C library's calls on files of one device wait a while before they are made.

A library is put under both sides (LD_PRELOAD). What waits: opening, reading, stating, renaming, unlinking, reading a
folder's entries is left alone, since real ones are read ahead. Whether a file is on the slow device is asked with a
system call that costs a microsecond.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from benchmarks.measure import run_timed

MICROSECONDS = 1000

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static unsigned long slow_device(void) {
    static unsigned long device = 1;
    if (device == 1) { const char *text = getenv("SLOW_DEVICE"); device = text ? strtoul(text, 0, 10) : 0; }
    return device;
}
static void pause_for(void) {
    const char *text = getenv("SLOW_MICROSECONDS");
    struct timespec t = {0, (text ? atol(text) : 0) * 1000};
    nanosleep(&t, 0);
}
static void slow_fd(int fd) {
    struct stat found;
    if (slow_device() && syscall(SYS_fstat, fd, &found) == 0 && found.st_dev == slow_device()
        && !S_ISDIR(found.st_mode)) pause_for();
}
static void slow_at(int dir, const char *path) {
    struct stat found;
    if (slow_device() && syscall(SYS_newfstatat, dir, path, &found, AT_SYMLINK_NOFOLLOW) == 0
        && found.st_dev == slow_device() && !S_ISDIR(found.st_mode)) pause_for();
}
#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int opened(int (*real)(int, const char *, int, ...), int dir, const char *path, int flags, mode_t mode) {
    slow_at(dir, path);
    return real(dir, path, flags, mode);
}
#define OPENAT(name) int name(int dir, const char *path, int flags, ...) { \
    REAL(name); va_list a; va_start(a, flags); mode_t m = flags & O_CREAT ? va_arg(a, mode_t) : 0; va_end(a); \
    return opened(real, dir, path, flags, m); }
#define OPEN(name, at) int name(const char *path, int flags, ...) { \
    REAL(at); va_list a; va_start(a, flags); mode_t m = flags & O_CREAT ? va_arg(a, mode_t) : 0; va_end(a); \
    return opened(real, AT_FDCWD, path, flags, m); }
int openat(int, const char *, int, ...);
int openat64(int, const char *, int, ...);
OPENAT(openat)
OPENAT(openat64)
OPEN(open, openat)
OPEN(open64, openat64)
ssize_t read(int fd, void *to, size_t n) { REAL(read); slow_fd(fd); return real(fd, to, n); }
int fstatat(int d, const char *p, struct stat *s, int f) { REAL(fstatat); slow_at(d, p); return real(d, p, s, f); }
int fstatat64(int d, const char *p, struct stat64 *s, int f) {
    REAL(fstatat64); slow_at(d, p); return real(d, p, s, f); }
int lstat(const char *p, struct stat *s) { REAL(lstat); slow_at(AT_FDCWD, p); return real(p, s); }
int lstat64(const char *p, struct stat64 *s) { REAL(lstat64); slow_at(AT_FDCWD, p); return real(p, s); }
int stat(const char *p, struct stat *s) { REAL(stat); slow_at(AT_FDCWD, p); return real(p, s); }
int stat64(const char *p, struct stat64 *s) { REAL(stat64); slow_at(AT_FDCWD, p); return real(p, s); }
int unlinkat(int d, const char *p, int f) { REAL(unlinkat); slow_at(d, p); return real(d, p, f); }
int renameat(int d, const char *p, int e, const char *q) { REAL(renameat); slow_at(d, p); return real(d, p, e, q); }
int rename(const char *p, const char *q) { REAL(rename); slow_at(AT_FDCWD, p); return real(p, q); }
int unlink(const char *p) { REAL(unlink); slow_at(AT_FDCWD, p); return real(p); }
"""


def build_slow(work: Path) -> Path | None:
    """The library, made here; None where it cannot be."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library, source = work / "slow.so", work / "slow.c"
    source.write_text(_SOURCE)
    made = subprocess.run(
        [compiler, "-O2", "-w", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=False
    )
    return library if made.returncode == 0 else None


def slow_environment(library: Path, place: Path) -> dict[str, str]:
    """What makes every command of a benchmark wait on files of ``place``'s device."""
    return {
        "LD_PRELOAD": str(library),
        "SLOW_DEVICE": str(place.stat().st_dev),
        "SLOW_MICROSECONDS": str(MICROSECONDS),
    }


def probe_slow(library: Path, place: Path) -> float:
    """Milliseconds that one look at a file takes under the library: to know that it works."""
    file = place / "probe"
    file.write_bytes(b"x")
    script = f"import os\nfor _ in range(100): os.stat({str(file)!r})"
    quiet = run_timed(["python3", "-c", script], cwd=place)
    slow = run_timed(["python3", "-c", script], cwd=place, env=slow_environment(library, place))
    file.unlink()
    return (slow - quiet) * 10
