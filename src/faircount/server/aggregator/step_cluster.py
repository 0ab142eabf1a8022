"""The aggregator's long work on a Dask cluster, if the setting `scheduler` names one.

The cluster is a part of the aggregator: its workers receive the survey's secret keys and decrypt
the shares. It must belong to the same operator and be reached over a private network or over TLS
(tls:// and Dask's settings for certificates).
"""

import asyncio
from importlib.util import find_spec
from typing import Any, TypeVar

from faircount.core.errors import ParameterError, StorageError
from faircount.server.aggregator.step_process import Work, Workers

R = TypeVar("R")

SECONDS_TO_ANSWER = 10
"""How long to wait for the scheduler, and for its first worker."""


class WorkerCluster(Workers):
    """The workers of one scheduler, which is connected when there is work for the first time.

    Work whose worker dies is done by another one. Nothing is lost if the whole cluster fails: work
    gives the same result wherever and however often it is done.
    """

    def __init__(self, scheduler: str) -> None:
        if find_spec("distributed") is None:
            raise ParameterError(
                "the setting scheduler needs Dask: pip install 'faircount[cluster]'"
            )
        self._scheduler = scheduler
        self._client: Any = None
        self._connecting = asyncio.Lock()

    async def run(self, work: Work[R]) -> R:
        """Do the work on a worker that is free."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        try:
            client = await self._connect()
            # Not pure: Dask must not return a cached result for equal inputs.
            result: R = await client.submit(work.run, pure=False)
        except (OSError, KilledWorker, FutureCancelledError) as problem:
            self.close()
            raise StorageError(
                f"the Dask cluster at {self._scheduler} does not work: "
                f"{type(problem).__name__}; the request will be repeated"
            ) from problem
        return result

    async def _connect(self) -> Any:
        """The client of the scheduler, which is connected first if necessary."""
        import dask
        from distributed import Client

        # By default Dask keeps its last thousand messages, for debugging: here up to a gigabyte of
        # encrypted shares, beside the keys that decrypt them.
        dask.config.set({"distributed.admin.low-level-log-length": 0})
        # Dask has no type annotations.
        create_client: Any = Client
        async with self._connecting:
            if self._client is None:
                client = await create_client(
                    self._scheduler,
                    asynchronous=True,
                    timeout=SECONDS_TO_ANSWER,
                    set_as_default=False,
                )
                self._client = client
                await client.wait_for_workers(1, timeout=SECONDS_TO_ANSWER)
        return self._client

    def close(self) -> None:
        """Disconnect from the cluster, which keeps running; the next work connects again."""
        client = self._client
        self._client = None
        if client is not None:
            self._leaving = asyncio.ensure_future(client.close())
