"""Where the blocks of a sweep are worked: in this process, in a few processes, or on a Dask cluster.

An engine is a generator of finished blocks, in any order. Closing it stops what it started.
"""

import os
import pickle
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from faircount.core.errors import FaircountError, ParameterError
from faircount.core.validation import integer
from faircount.sweep.blocks import Block, Job, task_name, work

Blocks = Generator[Block, None, None]
Engine = Callable[[Sequence[Job], str | None, int | None], Blocks]

PATIENCE = 3.0
"""Seconds of work, done and expected, above which the local engine takes more processes by itself."""

PROCESSES = 2
"""How many it takes then, and the workers of a Dask cluster that is started here."""

PARCELS = 200
"""At most this many parcels of blocks are sent to a Dask cluster."""

ANSWERING, JOINING = 10, 60
"""Seconds within which a Dask scheduler must answer, and have a worker."""


def local(jobs: Sequence[Job], scheduler: str | None, workers: int | None) -> Blocks:
    """This process for small work (or `workers=1`), a pool of processes for large."""
    if scheduler is not None:
        raise ParameterError("a scheduler address is for engine='dask': leave it out, or choose that engine")
    if workers is not None and integer("workers", workers, least=1) > 1:
        yield from _pool(jobs, workers)
        return
    started = time.perf_counter()
    for done, job in enumerate(jobs, start=1):
        yield work(job)
        left = jobs[done:]
        if workers is None and len(left) > 1 and _is_large(time.perf_counter() - started, jobs[:done], left):
            yield from _pool(left, PROCESSES)
            return


def _is_large(spent: float, done: Sequence[Job], left: Sequence[Job]) -> bool:
    """Whether what is left is worth more processes, at the speed so far."""
    return spent > PATIENCE and spent / sum(job.cost for job in done) * sum(job.cost for job in left) > PATIENCE


def _pool(jobs: Sequence[Job], workers: int) -> Blocks:
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    _sendable(jobs)
    spawn = get_context("spawn")  # a forked child would inherit threads' locks
    pool = ProcessPoolExecutor(min(workers, len(jobs)), mp_context=spawn, initializer=_end_with_parent)
    try:
        for future in as_completed([pool.submit(work, job) for job in jobs]):
            yield future.result()
    except BrokenProcessPool:
        raise FaircountError(
            "a worker process died (out of memory, killed, or a script without `if __name__ == '__main__':`): "
            "run again with the same resume file, or with workers=1"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _sendable(jobs: Sequence[Job]) -> None:
    try:
        pickle.dumps(jobs[0])
    except (pickle.PicklingError, AttributeError, TypeError):
        name = task_name(jobs[0].task)
        raise ParameterError(f"{name} cannot be sent to another process: define it at the top of a module") from None


def _end_with_parent() -> None:
    """A pool's processes would wait for ever for a parent that was killed: watch it, and leave with it."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_leave_after, args=(parent.join,), daemon=True).start()


def _leave_after(wait: Callable[[], None]) -> None:
    wait()
    os._exit(1)


def dask(jobs: Sequence[Job], scheduler: str | None, workers: int | None) -> Blocks:
    """A Dask cluster: the one at the scheduler's address, or one started here with `workers` processes.

    A block whose worker dies is done again by another, with the same numbers; with no worker left, one is waited for.
    """
    if scheduler is not None and workers is not None:
        raise ParameterError("a cluster with a scheduler address has its own workers: leave workers out")
    distributed = _distributed()
    _sendable(jobs)
    with _client(scheduler, workers) as client:
        futures = client.map(_work_all, _parcels(jobs), pure=False)
        try:
            for future, blocks in distributed.as_completed(futures, loop=client.loop, with_results=True):
                if isinstance(blocks, BaseException):  # Dask hands over, rather than raises, the loss of its scheduler
                    raise blocks
                future.release()  # the cluster need not keep what has arrived
                yield from blocks
        except (distributed.KilledWorker, distributed.client.FutureCancelledError) as error:
            raise FaircountError(f"the Dask cluster gave up ({error}): run again with the same resume file") from error


def _parcels(jobs: Sequence[Job]) -> list[Sequence[Job]]:
    """Neighbouring blocks together: a cluster spends milliseconds on each parcel, whatever is in it."""
    size = -(-len(jobs) // PARCELS)
    return [jobs[start : start + size] for start in range(0, len(jobs), size)]


def _work_all(jobs: Sequence[Job]) -> list[Block]:
    return [work(job) for job in jobs]


@contextmanager
def _client(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the cluster; one that is started here listens on this machine only, with keys of its own."""
    distributed = _distributed()
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=ANSWERING, set_as_default=False)
        except (OSError, ValueError) as error:
            raise FaircountError(
                f"no Dask scheduler answers at {scheduler}: start one, or check the address"
            ) from error
        with client:
            _await_worker(client)
            yield client
        return
    size = integer("workers", PROCESSES if workers is None else workers, least=1)
    private = {"dashboard_address": None, "host": "127.0.0.1", "security": True}
    with (
        distributed.LocalCluster(n_workers=size, threads_per_worker=1, processes=True, **private) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _await_worker(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=JOINING)
    except TimeoutError:
        raise FaircountError(f"the Dask scheduler has had no worker for {JOINING} s: start one") from None


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise ParameterError("engine='dask' needs Dask: pip install 'faircount[cluster]'") from None
    return distributed


ENGINES: dict[str, Engine] = {"local": local, "dask": dask}
