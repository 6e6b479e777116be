"""The shapes of errors that carry no level: what runtimes, compilers, shells and clusters write when something dies.

Tables of patterns and nothing else; each is tried on one line without its prefixes, colours and time. Every pattern
runs in linear time on the bounded head that it is given.
"""

from __future__ import annotations

import re
from typing import Any, Final

import re2


def linear(pattern: bytes) -> Any:
    """An expression over bytes that an automaton runs: the same speed however many alternatives it has."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 * 2**20
    return re2.compile(pattern, options)


# --- an unlevelled line that is an error because of how it begins --------------------------------------------------

_NO_VALUE: Final = rb"(?![-+]?[\d.][\d.,eE+-]*%?\s*(?:$|[,;|)/]|\w+$)|(?:none|null|nil|nan|inf|false|no)\b|\[\]|\{\}|$)"

BEGINNINGS: Final = re.compile(
    rb"""
      (?:[A-Za-z_]\w*\.){0,12}[A-Z]\w*(?:Error|Exception|ExceptionGroup)(?:\([\w.]{1,80}\))?(?::\ (?![-+]?\d*\.\d)|:?$)
    | (?:KeyboardInterrupt|SystemExit:\ (?!0$))
    | (?:\w{1,64}\.){1,12}(?:exc|errors?|exceptions?)\.[A-Z]\w*:\ \S
    | Exception\ (?:in\ (?:thread|ASGI)|ignored\ in|during|raised\ from)
    | Caused\ by:\ \S
    | (?:Un(?:caught|handled)\ (?:exception|error))
    | Error\ [\w\ ]{1,80}\ at\ line\ \d|failed\ \(exitcode:\ -?\d
    | Error\ (?:executing\ job|in\ (?:sys\.excepthook|call\ to\ target|atexit))
    | (?:(?:fatal|internal|catastrophic|syntax|compilation)\ )?
      (?:[Ee]rror|ERROR)(?:\ [A-Z]{1,6}\d{1,6})?(?:\[\w+\])?:\ (?i:"""
    + _NO_VALUE
    + rb""")\S
    | (?:fatal|FATAL):\ \S
    | make(?:\[\d+\])?:\ \*\*\*\ 
    | panic:\ \S
    | npm\ (?:ERR!|error)\ \S
    """,
    re.VERBOSE,
)
# `prog: error: text`, `file.c:12:3: fatal error: text`, `kernels.cu(42): error: text`
FROM_A_PROGRAM: Final = re.compile(
    rb"[\w./+@~-]{1,256}(?:\[\d+\])?(?:\(\d+(?:,\d+)?\))?(?::\d+(?::\d+)?)?\s?: "
    rb"(?:fatal |internal |catastrophic |compiler |write |read |I/O |parse )?"
    rb"(?:[Ee]rror|ERROR|fatal|FATAL)(?: [A-Z]{1,6}\d{1,6})?: (?i:" + _NO_VALUE + rb")\S"
)
FROM_A_SHELL: Final = re.compile(
    rb"(?:[\w./-]{1,256}: line \d{1,6}: |-?(?:ba|z|da|k)?sh: (?:\d+: |line \d+: )?)"
    rb".{0,400}?(?:command not found|No such file or directory|Permission denied|[Kk]illed|Segmentation fault|Aborted|"
    rb"[Bb]us error|syntax error|unbound variable|Illegal instruction|cannot execute|core dumped|not found$)"
)

# `mkdir: cannot create directory 'x': Disk quota exceeded`: a program's name in front, the system's reason at the end
FROM_THE_SYSTEM: Final = re.compile(
    rb"[\w./+-]{1,128}(?:\[\d+\])?: .{0,320}?(?:No such file or directory|Permission denied|No space left on device|"
    rb"Disk quota exceeded|Input/output error|Stale file handle|Read-only file system|Cannot allocate memory|"
    rb"Connection refused|Connection reset by peer|Too many open files|Transport endpoint is not connected|"
    rb"Operation not permitted|Device or resource busy)\.?\s*$"
)

# --- an unlevelled line that is an error because of what it says, wherever it says so ---------------------------------

FATAL_PHRASES: Final = linear(
    rb"(?:^|: ?|\d {1,8})Segmentation fault(?:\s*$| *\(|:|  )|(?:^|: )Bus error|"
    rb"^Killed$|^Aborted(?: \(core dumped\))?$|\(core dumped\)|"
    rb"Fatal Python error|terminate called (?:after throwing|without an active|recursively)|"
    rb"double free or corruption|free\(\): invalid|malloc\(\): |munmap_chunk\(\): |corrupted (?:size vs|double-linked)|"
    rb"\*\*\* (?:Error in|stack smashing|buffer overflow|SIG[A-Z]+ \(@|Aborted at |Process received signal)|"
    rb"Kernel panic|Out of memory: Kill|[Oo]om-kill|invoked oom-killer|Memory cgroup out of memory|"
    rb"(?:Received|received|got|with|on) signal:? (?:4|6|7|8|9|11)\b|Signal \d+ \(SIG[A-Z]+\) received|"
    rb"exitcode *: -\d+|exited on signal|segfault at |^panicked at |^thread '[^']{0,80}' panicked|"
    rb"DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE|MEMORY)"
)
ERROR_PHRASES: Final = linear(
    rb"NCCL WARN|NVRM: Xid|CUDA out of memory|out of memory\. Tried to allocate|CUDA error:|CUDA_ERROR_[A-Z_]+|"
    rb"(?:CUBLAS|CUDNN|NCCL|CUSOLVER|CUFFT)_STATUS_(?:[A-RT-Z]|S[A-TV-Z])|ncclUnhandledCudaError|ncclSystemError|"
    rb"Assertion [`'].+['`] failed|Check failed: |"
    rb"Exited with exit code [1-9]|: Out Of Memory$|OOMKilled|exitcode *: [1-9]|"
    rb"the job has been aborted|MPI_ABORT was invoked|An error occurred in MPI_|"
    rb"non-zero exit (?:code|status)[: ]+-?[1-9]|"
    rb"A worker died or was killed|worker died|actor (?:is )?died|"
    rb"uncorrectable (?:ECC|NVLink)|Uncorrectable ECC|GPU has fallen off the bus"
)
# What counts whatever level the line has: NCCL and the GPU driver warn of what ends a job.
ALWAYS: Final = re.compile(rb"NCCL WARN|NVRM: Xid")
# In quotes it is a string of a program that is shown, not what the program says.
QUOTED: Final = re.compile(rb"""["'`]\s*$""")

# --- how an error goes on -------------------------------------------------------------------------------------------

TRACE_HEAD: Final = re.compile(
    rb"(?:^|[\s|+>\]:)-])(?:Original |Exception Group |Remote )?Traceback \(most recent call (?:last|first)\)"
    rb"(?::?\s*$|:? ?(?:\xe2\x94\x80|-))"
)
FOLLOWS: Final = re.compile(
    rb"""
      \s*File\ ".{1,512}",\ line\ \d+
    | \s*at\ [\w$.<>/@-]{1,400}[\s(]
    | \s*\.\.\.\ \d+\ (?:more|common\ frames)
    | \s*(?:Caused\ by|Suppressed):\ 
    | (?:During\ handling\ of\ the\ above|The\ above\ exception\ was)\ 
    | \s*frame\ \#\d+:\ 
    | Exception\ raised\ from\ 
    | \s+what\(\):
    | (?:Current\ thread|Thread)\ 0x[0-9a-f]+
    | Extension\ modules:\ 
    | \*\*\*\ (?:Check\ failure|SIG|Aborted|End\ of\ error)
    | \s*@\ +0x[0-9a-f]+
    | \s*\#\d{1,3}:?\ +(?:0x[0-9a-f]+|\S+\()
    | \s*\[\S{1,80}:\d+\]\ (?:\[\s?\d+\]|\*\*\*|Signal|Failing)
    | \s{2,}(?:\||\+-)|\xe2\x94\x82|\xe2\x95\xad|\xe2\x95\xb0|\xe2\x9d\xb1            # exception groups, rich's boxes
    | CUDA\ kernel\ errors\ might\ be\ 
    | For\ debugging\ consider\ passing\ 
    | Compile\ with\ `TORCH_USE_CUDA_DSA`
    | Device-side\ assertion
    | (?:Last\ error|ncclInternalError|ncclSystemError|ncclUnhandled|ncclRemoteError):\ ?
    | goroutine\ \d+\ \[|\t/\S{1,400}\.go:\d+|[\w./*()-]{1,200}\.\w{1,80}\(.{0,200}\)$|exit\ status\ \d+$    # Go
    | (?:Failures|Root\ Cause\ \(first\ observed\ failure\)):
    | \s\s(?:time|host|rank|exitcode|error_file|traceback|msg)\s*:\ 
    | \s\s<NO_OTHER_FAILURES>
    | \[\d{1,6}\]:$
    | \d{1,3}\ {2,3}\S|Error\ Message\ Summary:                                 # Paddle's C++ stacks
    | [=-]{20,}$
    | \S{1,200}\ FAILED$
    | \S{0,80}(?:ray::|The\ above\ exception)
    | note:\ |stack\ backtrace:
    | Cell\ In\s?\[|(?:-{2,}>\ ?|\ +)\d+\ 
    """,
    re.VERBOSE,
)
GROUP_END: Final = re.compile(rb"\s*\+-{20,}$")
CHAINED: Final = re.compile(
    rb"During handling of the above|The above exception was|Original Traceback|Exception Group Traceback"
)
# Indented lines that are no continuation: Megatron's progress, bars, tables of numbers.
PROGRESS: Final = re.compile(
    rb"\s*(?:iteration +\d|step +\d|\d{1,3}%\||[^|\r\n]{0,80}?\d{1,3}%\||\{'loss'|epoch\b)|\s*[\d.\s|]*$"
)
