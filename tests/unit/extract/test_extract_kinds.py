"""Which lines are errors, format by format, and above all which are not."""

from __future__ import annotations

import json

import pytest

from tests.unit.extract.finding import find, is_error

ERRORS = {
    "python logging": [
        "ERROR:root:could not open shard-3",
        "CRITICAL:train.loop:giving up",
        "2026-03-12 03:14:15,123 ERROR train: step failed",
        "2026-03-12 03:14:15,123 - train - ERROR - step failed",
        "2026-03-12 03:14:15,123 4711 ERROR trainer [-] step failed",
        "[2026-03-12 03:14:15,123][train][ERROR] - step failed",
        "[2026-03-12 03:14:15,123] [ERROR] [launch.py:325:sigkill_handler] [python] exits with return code = 1",
        "[2026-03-12 03:14:15,123] [   ERROR] - step failed",
        "[2026-03-12 03:14:15,123: ERROR/MainProcess] Task failed",
        "[ERROR|trainer.py:1024] 2026-03-12 03:14:15,123 >> step failed",
        "12/18/2025 20:16:31 - ERROR - __main__ - step failed",
        "[12/01 20:00:00 d2.engine.train_loop] ERROR: Exception during training:",
        "ERROR [12/01 20:00:00 d2.engine.train_loop]: Exception during training:",
        "2026-03-12 03:14:15.123 | ERROR    | __main__:main:8 - step failed",
        "(MainThread) ERROR step failed",
        "ERROR 10-12 02:10:43 [core.py:710] EngineCore encountered a fatal error.",
        "LAUNCH ERROR 2026-03-12 07:43:01,546 Container failed !!!",
        "wandb: ERROR Error while calling W&B API: permission denied",
        "Mar 12 03:14:15 gpu-001 train[4711]: ERROR step failed",
    ],
    "glog, klog, torch": [
        "E1123 12:00:00.123456 140 torch/distributed/elastic/multiprocessing/api.py:833] failed (exitcode: 1)",
        "F0312 03:14:15.123456 4711 gpu_resources.cc:119] no device",
        "E0312 03:14:15.123456       1 leaderelection.go:330] error retrieving resource lock",
        "[E ProcessGroupNCCL.cpp:475] [Rank 3] Watchdog caught collective operation timeout",
        "[E1123 12:00:00.123 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout",
        "[rank3]:[E909 09:55:46.996672294 ProcessGroupNCCL.cpp:1709] [PG 0 Rank 3] Timeout at NCCL work: 2070",
        "[default3]:[rank3]:[E1123 12:00:00.123 ProcessGroupNCCL.cpp:616] [Rank 3] timeout",
        "2026-03-12 03:14:15.123456: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable",
        "2026-03-12 03:14:15.123456: F tensorflow/core/platform/default/env.cc:73] Check failed: ret == 0 (11 vs. 0)",
        "E0000 00:00:1731000000.123456    4711 cuda_blas.cc:1418] Unable to register cuBLAS factory",
        "node:4711:4802 [0] misc/socket.cc:456 NCCL WARN Net : Connect to 10.0.0.1<1234> failed : Connection refused",
        "node:4711:4802 [0] transport/nvls.cc:158 NCCL WARN Cuda failure 1 'invalid argument'",
    ],
    "Ray and vLLM": [
        "(pid=4711) ValueError: bad batch",
        "(raylet) [2026-03-12 03:14:15,123 E 31009 225171] (raylet) node_manager.cc:3040: Workers killed",
        "(raylet) A worker died or was killed while executing a task by an unexpected system error.",
        "\x1b[33m(raylet, ip=10.0.0.7)\x1b[0m A worker died or was killed while executing a task",
        "(RayTrainWorker pid=1, ip=10.0.0.7) RuntimeError: CUDA out of memory.",
        "[2026-03-12 03:14:15,123 C 31009 225171] (gcs_server) gcs_server.cc:42:  Check failed: status",
        "(EngineCore_DP0 pid=3452) ERROR 10-12 02:10:43 [core.py:710] EngineCore encountered a fatal error.",
        "2026-03-12 03:14:15,123\tERROR worker.py:405 -- Unhandled error",
        "ray.exceptions.RayTaskError(ValueError): ray::bad() (pid=21195, ip=10.0.0.2)",
    ],
    "JSON lines": [
        '{"ts":"2026-03-12T03:14:15Z","level":"error","msg":"step failed"}',
        '{"severity": "ERROR", "message": "step failed"}',
        '{"levelname": "CRITICAL", "name": "train", "message": "step failed"}',
        '{"t": 1, "lvl": "eror", "msg": "x"}',
        '{"level":50,"time":1700000000000,"pid":1,"msg":"x"}',
        '{"log.level": "error", "message": "x"}',
        '{"message": "Traceback (most recent call last):"}',
        '{"event": "failed", "exc_info": "Traceback (most recent call last):\\n  File \\"a.py\\"\\nKeyError: 1"}',
        "time=2026-03-12T03:14:15Z level=error msg=failed",
        't=2026-03-12T03:14:15+0000 lvl=eror msg="Invalid"',
    ],
    "MLLOG": [
        ':::MLLOG {"namespace": "", "event_type": "INTERVAL_END", "key": "run_stop", '
        '"metadata": {"status": "aborted", "lineno": 3}}',
    ],
    "containers": [
        "2026-03-12T03:14:15.123456789Z stderr F 2026-03-12 03:14:15,123 ERROR train: step failed",
        "2026-03-12T03:14:15.123456789+00:00 stdout F Traceback (most recent call last):",
        '{"log":"ERROR:root:failed\\n","stream":"stderr","time":"2026-03-12T03:14:15.1Z"}',
        '{"log":"{\\"level\\":\\"error\\",\\"msg\\":\\"failed\\"}\\n","stream":"stdout","time":"2026-03-12T03:14:15.1Z"}',
        "[pod/train-worker-3/pytorch] RuntimeError: CUDA error: an illegal memory access was encountered",
        "worker-3  | RuntimeError: CUDA error: an illegal memory access was encountered",
    ],
    "Slurm and MPI": [
        "slurmstepd: error: *** JOB 123 ON gpu-001 CANCELLED AT 2026-03-12T03:14:15 DUE TO TIME LIMIT ***",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=123.batch.",
        "[2026-03-12T03:14:15.123] error: *** STEP 7.0 ON node1 CANCELLED AT 2026-03-12T03:14:15 DUE TO TIME LIMIT ***",
        "srun: error: gpu-001: task 3: Out Of Memory",
        "srun: error: gpu-001: tasks 0-7: Exited with exit code 1",
        "3: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        " 12: Traceback (most recent call last):",
        "  1%|          | 1/100 [00:37<1:02:28, 37.86s/it]slurmstepd: error: *** STEP 1.0 ON n CANCELLED AT 2026 ***",
        "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).",
        "[1,3]<stderr>:ValueError: bad batch",
        "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD",
    ],
    "torchrun's end": [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 1)",
        "torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 740615) of binary: x",
        "  exitcode  : -9 (pid: 11127)",
        "  traceback : Signal 9 (SIGKILL) received by PID 11127",
    ],
    "processes that die": [
        "Segmentation fault (core dumped)",
        "train.sh: line 12:  4711 Segmentation fault      (core dumped) python train.py",
        "/var/spool/slurmd/job1/slurm_script: line 15: 157728 Killed                  python train.py",
        "Killed",
        "Bus error (core dumped)",
        "Fatal Python error: Segmentation fault",
        "terminate called after throwing an instance of 'c10::Error'",
        "*** Error in `python': double free or corruption (!prev): 0x00000000 ***",
        "*** SIGSEGV (@0x0) received by PID 4711 (TID 0x7f) from PID 0; stack trace: ***",
        "python: foo.c:12: f: Assertion `x > 0' failed.",
        "../aten/src/ATen/native/cuda/Indexing.cu:1146: block: [0,0,0], thread: [31,0,0] Assertion `i < n` failed.",
        "Out of memory: Killed process 4711 (python) total-vm:1kB",
        "Mar 12 03:14:15 gpu-001 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.",
        "panic: runtime error: index out of range [3] with length 3",
        "thread 'main' panicked at src/main.rs:3:5:",
    ],
    "exceptions and tools": [
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total capacity)",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "AssertionError",
        "batch.BadShardError",
        "KeyboardInterrupt",
        'Exception in thread "main" java.lang.IllegalStateException: x',
        "Caused by: java.io.IOException: disk quota exceeded",
        "  + Exception Group Traceback (most recent call last):",
        "a.c:1:20: error: 'x' undeclared (first use in this function)",
        "a.c:2:10: fatal error: nope.h: No such file or directory",
        "kernels.cu(42): error: identifier \"x\" is undefined",
        "make: *** [Makefile:3: a.o] Error 1",
        "train.py: error: unrecognized arguments: --foo",
        "fatal: repository '/nope' does not exist",
        "ERROR: Could not find a version that satisfies the requirement x",
        "Error: No such command 'trian'.",
        "bash: line 49: foo: command not found",
        "./run.sh: line 3: /opt/train: Permission denied",
        "cat: write error: Cannot allocate memory",
        "mkdir: cannot create directory 'ckpt': Disk quota exceeded",
        "cp: error writing '/ckpt/model.pt': No space left on device",
        "ls: cannot open directory '/data': Stale file handle",
        "npm ERR! code ELIFECYCLE",
        "Error invalid argument at line 393 in file /bitsandbytes/csrc/pythonInterface.c",
        "[Wed Oct 11 14:32:52.123456 2026] [auth_digest:error] [pid 1] [client 10.0.0.1:1] AH01788: mismatch",
        "[ERROR] ME(3438,python):2026-05-07-23:11:49.929.959 [mindspore/x.cc:115] BuildKernel] not supported.",
        "[0312/031415.123456:ERROR:gpu_init.cc(453)] Passthrough is not supported",
    ],
}  # fmt: skip

CLEAN = [
    "0 errors",
    "errors: 0",
    "Finished with 0 errors and 3 warnings",
    "INFO step=10 grad_error=0.001",
    " iteration      100/  500000 | number of skipped iterations:   0 | number of nan iterations:   0 |",
    "step 12 loss/error 0.01 error_rate 0.02",
    "Clean: Test Loss: 0.31 | Test error: 0.0523",
    "Train Error: 0.0123 | Test Error: 0.2500",
    "Error: 0.0123, Accuracy: 88.5",
    "error: 0.31",
    "error: none",
    "Test Error: ",
    "MeanSquaredError: 0.31",
    "loss: nan",
    "python train.py --on-error=continue --log-level ERROR --error-file error.log",
    "LOG_LEVEL=ERROR",
    "  log_level: ERROR",
    "export NCCL_DEBUG=WARN",
    '{"on_error": "raise", "level": "info", "error": null}',
    '{"level":"info","msg":"0 errors in batch"}',
    '{"level":"warning","msg":"ERROR: retrying"}',
    '{"level":30,"msg":"error"}',
    '{"config": {"level": "error"}, "loss": 0.3}',
    "{'on_error': 'raise', 'error': None, 'errors': 0}",
    '    raise ValueError("Error: bad value")',
    "except Exception as e:",
    '    logger.error("failed: %s", e)',
    '    print("Traceback (most recent call last):")',
    '    if "CUDA out of memory" in str(e):',
    "class MyError(Exception):",
    "from torch.cuda import OutOfMemoryError",
    "# ERROR: this is a comment of a script that is shown",
    "2026-03-12 03:14:15,123 INFO train: retrying after error: connection reset",
    "2026-03-12 03:14:15,123 INFO train: ERROR budget 5",
    "2026-03-12 03:14:15,123 WARNING train: CUDA out of memory, halving the batch",
    "2026-03-12 03:14:15,123 DEBUG train: ValueError: tolerated",
    "INFO:root:Error: none found",
    "W1123 12:00:00.123456 140 run.py:793] error in setting",
    "I1123 12:00:00.123456 140 run.py:793] Error: x",
    "[W socket.cpp:601] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 97)",
    "[2026-03-12 03:14:15,123 W 21048 21048] (gcs_server) gcs_actor_manager.cc:1233: Worker died",
    "node:4711:4802 [0] NCCL INFO Channel 00/02 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA",
    "a.py:31: UserWarning: this might error out",
    "/x/__init__.py:87: RequestsDependencyWarning: urllib3 doesn't match a supported version!",
    "Running ErrorHandlingTests ... ok",
    "PASSED tests/test_errors.py::test_error_rate",
    "wrote error.log and errors/error.json",
    "warning: data/shard-3: No such file or directory",
    "INFO:root:shard-3: No such file or directory",
    "skipped shard-3 for: Permission denied is no news here",
    "no ERROR was found in the shard",
    "    error: Exception",
    "    catch (error) {",
    "    super.emit(ERROR, data);",
    "(function (ERROR) {",
    "    ERROR.stateNumber = 0x7FFFFFFF",
    "  // Error: not in PATH",
    "    // CRITICAL: do not pass the streams",
    "If it has a non-zero exit code, this method will throw.",
    "Problem:    Segmentation fault when Ruby throws an exception",
    "* **OOM**: Out Of Memory - Situation where a program exceeds its memory",
    "- **Regulatory**: CRITICAL - law enforcement data",
    "2. Complete Phase 2: Foundational (CRITICAL - blocks all stories)",
    "==4711== ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 0 from 0)",
    "|message.txt|\t(error) messages and explanations",
    "This is an ERROR that I tell of in prose.",
    "Summary of ERROR codes and what they mean",
    "An error occurred while training, skipping",
    ':::MLLOG {"namespace": "", "event_type": "POINT_IN_TIME", "key": "eval_error", "value": 0.3, "metadata": {}}',
    ':::MLLOG {"namespace": "", "event_type": "INTERVAL_END", "key": "run_stop", "metadata": {"status": "success"}}',
    "2026-03-12T03:14:15.123456789Z stdout F 0 errors",
    '{"log":"0 errors\\n","stream":"stdout","time":"2026-03-12T03:14:15.1Z"}',
    "\r  1%|1         | 1/100 [00:37<1:02:28, 37.86s/it, error=0.1]",
    "\u9519\u8bef".encode("gbk").decode("latin-1"),
    "",
]


@pytest.mark.parametrize(
    "line", [pytest.param(line, id=f"{kind}-{line[:40]}") for kind in ERRORS for line in ERRORS[kind]]
)
def test_this_line_is_an_error(line: str) -> None:
    assert is_error(line)
    assert is_error(line + "\r\n")
    assert find(f"fine\n{line}\nfine\n").counts


@pytest.mark.parametrize("line", CLEAN)
def test_this_line_is_none(line: str) -> None:
    assert not is_error(line)
    assert not find(f"fine\n{line}\nfine\n".encode("utf-8", "surrogateescape")).blocks


@pytest.mark.parametrize(
    "line", [line for kind in ERRORS for line in ERRORS[kind] if not line.startswith(("{", ":::"))]
)
def test_an_error_behind_the_prefix_of_a_rank_is_one_too(line: str) -> None:
    """Launchers put prefixes before whatever a process writes; what stands in column one then stands behind them."""
    if line.startswith(("2026-03-12T03:14:15.123456789", "slurmstepd", "srun", " ", "[1,3]")):
        return  # written by the runtime or the launcher itself
    for prefix in (
        "[rank3]: ",
        "[default3]:",
        "3: ",
        "(RayTrainWorker pid=1, ip=10.0.0.7) ",
        "\x1b[36m(pid=4)\x1b[0m ",
    ):
        assert is_error(prefix + line), prefix


def test_a_level_may_be_coloured() -> None:
    assert is_error("\x1b[32m2026-03-12 03:14:15.123\x1b[0m | \x1b[31m\x1b[1mERROR   \x1b[0m | \x1b[36mmain\x1b[0m - x")
    assert is_error("[\x1b[1;31mERROR\x1b[0m] x")


def test_the_levels_have_one_spelling_each() -> None:
    for word, level in {"ERROR": "ERROR", "CRITICAL": "FATAL", "FATAL": "FATAL", "PANIC": "FATAL"}.items():
        assert list(find(f"2026-03-12 03:14:15,123 {word} x\n").counts) == [level]
    assert find(json.dumps({"level": "fatal"})).counts == {"FATAL": 1}


def test_a_listing_of_source_code_holds_no_errors() -> None:
    from lifecycle.extract import finder

    with open(finder.__file__, "rb") as source:
        assert find(source.read()).blocks == ()
