"""The aggregator's long steps on a Dask cluster, where a scheduler is given.

The cluster is a part of the aggregator: its workers get the survey's secret keys and open what
was encrypted to the aggregator. So it belongs to the same organization, on a network of its own
or over TLS (tls:// and Dask's own settings for certificates).
"""

import asyncio
from importlib.util import find_spec
from typing import Any

from faircount.core.errors import ParameterError, StorageError
from faircount.server.aggregator.step_process import StepBytes, StepMaker, SteppedBytes, stepped

SECONDS_TO_ANSWER = 10
"""How long the scheduler may take to answer, and to have a worker."""


class StepCluster(StepMaker):
    """The workers of one scheduler, which is first called when there is something to do.

    A step whose worker dies is made by another one; nothing is lost if the whole cluster goes
    away, because a step is the same wherever and however often it is made.
    """

    def __init__(self, scheduler: str) -> None:
        if find_spec("distributed") is None:
            raise ParameterError(
                "the setting scheduler needs Dask: pip install 'faircount[cluster]'"
            )
        self._scheduler = scheduler
        self._client: Any = None
        self._connecting = asyncio.Lock()

    async def step(self, given: StepBytes) -> SteppedBytes:
        """The step, made by a worker that is free."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        try:
            client = await self._connected()
            made: SteppedBytes = await client.submit(stepped, given, pure=False)
        except (OSError, KilledWorker, FutureCancelledError) as problem:
            self.close()
            raise StorageError(
                f"the Dask cluster at {self._scheduler} does not work: {_words(problem)}"
            ) from problem
        return made

    async def _connected(self) -> Any:
        from distributed import Client

        to_cluster: Any = Client  # it says nothing about types
        async with self._connecting:
            if self._client is None:
                address, seconds = self._scheduler, SECONDS_TO_ANSWER
                client = await to_cluster(
                    address, asynchronous=True, timeout=seconds, set_as_default=False
                )
                self._client = client
                await client.wait_for_workers(1, timeout=seconds)
        return self._client

    def close(self) -> None:
        """Leave the cluster, which goes on; the next step calls it again."""
        client, self._client = self._client, None
        if client is not None:
            self._leaving = asyncio.ensure_future(client.close())


def _words(problem: Exception) -> str:
    return f"{type(problem).__name__}; the same is tried again"
