"""Where the blocks of a sweep are computed: this process, a pool of processes, or a Dask cluster.

An engine is a generator that yields finished blocks in any order. Closing the generator stops the
processes it has started.
"""

import os
import pickle
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from faircount.core.errors import FaircountError, ParameterError
from faircount.core.validation import check_integer
from faircount.reproduction.sweep.blocks import Block, Job, run_job, task_name

Blocks = Generator[Block, None, None]
Engine = Callable[[Sequence[Job], str | None, int | None], Blocks]

# The local engine starts a pool only when this many seconds have passed and as many remain:
# starting processes that import NumPy takes about a second.
POOL_THRESHOLD_SECONDS = 3.0

# Processes of such a pool, and of a Dask cluster that is started here.
DEFAULT_WORKERS = 2

# At most this many parcels of blocks are sent to a Dask cluster, which spends milliseconds on each.
MAX_PARCELS = 200

# How long a Dask scheduler may take to answer, and to find its first worker.
SCHEDULER_TIMEOUT = 10
WORKER_TIMEOUT = 60


def run_locally(jobs: Sequence[Job], scheduler: str | None, workers: int | None) -> Blocks:
    """Use this process for small sweeps (or `workers=1`) and a pool of processes for large ones."""
    if scheduler is not None:
        raise ParameterError(
            "a scheduler address is for engine='dask': leave it out, or choose that engine"
        )
    if workers is not None and check_integer("workers", workers, least=1) > 1:
        yield from _run_in_pool(jobs, workers)
        return
    started = time.perf_counter()
    for finished, job in enumerate(jobs, start=1):
        yield run_job(job)
        remaining = jobs[finished:]
        if workers is None and len(remaining) > 1:
            spent = time.perf_counter() - started
            if _is_worth_a_pool(spent, jobs[:finished], remaining):
                yield from _run_in_pool(remaining, DEFAULT_WORKERS)
                return


def _is_worth_a_pool(spent: float, finished: Sequence[Job], remaining: Sequence[Job]) -> bool:
    """Whether the remaining work, at the speed so far, justifies more processes."""
    if spent <= POOL_THRESHOLD_SECONDS:
        return False
    seconds_per_cost = spent / sum(job.cost for job in finished)
    return seconds_per_cost * sum(job.cost for job in remaining) > POOL_THRESHOLD_SECONDS


def _run_in_pool(jobs: Sequence[Job], workers: int) -> Blocks:
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    _require_picklable(jobs)
    # Spawned, not forked: a forked child would inherit the locks of this process's threads.
    context = get_context("spawn")
    pool = ProcessPoolExecutor(
        min(workers, len(jobs)), mp_context=context, initializer=_exit_with_parent
    )
    try:
        for future in as_completed([pool.submit(run_job, job) for job in jobs]):
            yield future.result()
    except BrokenProcessPool:
        raise FaircountError(
            "a worker process died (out of memory, killed, or a script without "
            "`if __name__ == '__main__':`): run again with the same resume file, or with workers=1"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _require_picklable(jobs: Sequence[Job]) -> None:
    try:
        pickle.dumps(jobs[0])
    except (pickle.PicklingError, AttributeError, TypeError):
        name = task_name(jobs[0].task)
        raise ParameterError(
            f"{name} cannot be sent to another process: define it at the top of a module"
        ) from None


def _exit_with_parent() -> None:
    """End this pool process when its parent is killed; otherwise it would wait forever."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.join,), daemon=True).start()


def _exit_after(wait: Callable[[], None]) -> None:
    wait()
    # Not sys.exit: this runs in a thread, and the process must go whatever its main thread does.
    os._exit(1)


def run_on_dask(jobs: Sequence[Job], scheduler: str | None, workers: int | None) -> Blocks:
    """Use the Dask cluster at the scheduler's address, or start one here with `workers` processes.

    When a worker dies, another one repeats its blocks and gets the same numbers. When none is
    left, the cluster waits for a new one.
    """
    if scheduler is not None and workers is not None:
        raise ParameterError(
            "a cluster with a scheduler address has its own workers: leave workers out"
        )
    distributed = _import_distributed()
    _require_picklable(jobs)
    with _connect(scheduler, workers) as client:
        futures = client.map(_run_jobs, _make_parcels(jobs), pure=False)
        completed = distributed.as_completed(futures, loop=client.loop, with_results=True)
        try:
            for future, blocks in completed:
                # Dask returns, and does not raise, the error that its scheduler is gone.
                if isinstance(blocks, BaseException):
                    raise blocks
                # What has arrived here need not stay in the memory of the cluster.
                future.release()
                yield from blocks
        except (distributed.KilledWorker, distributed.client.FutureCancelledError) as error:
            raise FaircountError(
                f"the Dask cluster gave up ({error}): run again with the same resume file"
            ) from error


def _make_parcels(jobs: Sequence[Job]) -> list[Sequence[Job]]:
    """Group neighbouring blocks into at most `MAX_PARCELS` parcels of equal size."""
    size = -(-len(jobs) // MAX_PARCELS)
    return [jobs[start : start + size] for start in range(0, len(jobs), size)]


def _run_jobs(jobs: Sequence[Job]) -> list[Block]:
    return list(map(run_job, jobs))


@contextmanager
def _connect(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the cluster."""
    distributed = _import_distributed()
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise FaircountError(
                f"no Dask scheduler answers at {scheduler}: start one, or check the address"
            ) from error
        with client:
            _wait_for_worker(client)
            yield client
        return
    size = check_integer("workers", DEFAULT_WORKERS if workers is None else workers, least=1)
    # Only this machine may connect, and only with the keys made here: a Dask worker runs any code
    # that it is sent.
    private = {"dashboard_address": None, "host": "127.0.0.1", "security": True}
    with (
        distributed.LocalCluster(
            n_workers=size, threads_per_worker=1, processes=True, **private
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _wait_for_worker(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
    except TimeoutError:
        raise FaircountError(
            f"the Dask scheduler has had no worker for {WORKER_TIMEOUT} s: start one"
        ) from None


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise ParameterError("engine='dask' needs Dask: pip install 'faircount[cluster]'") from None
    return distributed


ENGINES: dict[str, Engine] = {"local": run_locally, "dask": run_on_dask}
