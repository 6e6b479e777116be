"""The first look, at whole chunks: what an error cannot do without.

One pass of a linear-time automaton, at the same speed whatever stands here. A hit is only a reason to look at its line;
a line without one is never looked at, so that every shape of an error needs its word here.
"""

from __future__ import annotations

from typing import Final

from lifecycle.extract.kinds import linear

SIEVE: Final = linear(
    rb"ERROR|CRITICAL|FATAL|SEVERE|EMERG|PANIC|\b(?:ERR|CRIT|ALERT)\b|mERR|"
    rb"Traceback \(most|[A-Z]\w*(?:Error|Exception|Group)(?:\([\w.]+\))?(?:[:\r\n\"]|\\n)|"
    rb"KeyboardInterrupt|SystemExit:|\.(?:exc|errors?|exceptions?)\.[A-Z]|"
    rb"[\r\n:\] mE\"/]\s?(?:[Ee]rror|[Ff]atal|[Cc]ritical)(?: [A-Z]+\d+)?(?:\[\w+\])?:|"
    rb"[\[<|(:](?:[Ee]rror|[Ff]atal|[Cc]rit|[Cc]ritical|emerg|alert|panic)[\]>|):]|"
    rb"(?:[Ll]evel|[Ll]vl|[Ss]everity|levelname)\\?[\"']?[:=] ?\\?[\"']?"
    rb"(?:[Ee]rr|ERR|[Ff]atal|FATAL|[Cc]rit|CRIT|[Pp]anic|PANIC|[Ee]merg|EMERG|[Aa]lert|ALERT|"
    rb"dpanic|DPANIC|eror|50\b|60\b)|"
    rb"[\r\n\[\] :m\"][EFC]\d{3,8} \d\d:|\[[EFC](?:\]| )|"
    rb"\d [EFC] (?:\d+ \d+\]|[\w./-]+\.(?:cc|cpp|cu|h|py)|tensorflow|xla)|"
    rb"\d: [EF] |\d +\d+ [EF] |"
    rb"NCCL WARN|Xid|Segmentation fault|[Bb]us error|[Kk]illed|Kill|Aborted|been aborted|"
    rb"core dumped|Fatal Python|terminate called|"
    rb"double free|free\(\)|malloc\(\)|munmap_chunk|corrupted |\*\*\* |Kernel panic|[Oo]om-kill|oom-killer|"
    rb"signal|Signal|exitcode|segfault|panick?(?:ed|:)|DUE TO |out of memory|Out Of Memory|CUDA|_STATUS_|"
    rb"nccl[A-Z]\w+Error|"
    rb"Assertion|Check failed|exit code|exit status|MPI_|died|ncorrectable|fallen off|"
    rb"Caused by|Exception (?:in|ignored|during|raised)|[Uu]n(?:caught|handled)|"
    rb"Error (?:executing|in |[\w ]{1,80} at line)|"
    rb"command not found|No such file|Permission denied|syntax error|unbound variable|Illegal instruction|"
    rb"cannot execute|No space left|quota exceeded|Input/output|Stale file|Read-only file|annot allocate|"
    rb"Connection re(?:fused|set)|Too many open|Transport endpoint|not permitted|resource busy|"
    rb"not found[\r\n\"\\]|"
    rb"\"aborted\"|npm (?:ERR|err)|"
    rb"std(?:out|err) P|(?:[^n]|[^\\]n)\",\"stream\":\"std"
)  # fmt: skip
