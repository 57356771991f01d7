"""Hold what every handler needs: the service, threads for its work, facts of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from lrtflite.errors import Busy
from lrtflite_serve.http.bodies import Budget
from lrtflite_serve.service.device import DeviceCamera
from lrtflite_serve.service.service import Service

# Seconds between two looks for a new picture.
LOOK = 0.02
Result = TypeVar("Result")
# Threads for frames and short questions; the runtime answers one frame at a time anyway.
FRAME_THREADS = 2
# Threads for changes and files, which may wait for one another.
SLOW_THREADS = 6


class Api:
    """A service and the threads in which its methods run.

    The event loop itself never waits for a model, a disk or a lock. Threads start when needed.
    """

    def __init__(self, service: Service, *, token_required: bool, secure: bool) -> None:
        self.service = service
        self.token_required, self.secure = token_required, secure
        self.budget = Budget()
        self._is_uploading = False
        self._frames = ThreadPoolExecutor(FRAME_THREADS, "frames")
        self._slow = ThreadPoolExecutor(SLOW_THREADS, "changes")

    async def quick(self, work: Callable[..., Result], *args: Any) -> Result:
        """Run work of milliseconds in a thread for frames."""
        return await asyncio.get_running_loop().run_in_executor(self._frames, work, *args)

    async def slow(self, work: Callable[..., Result], *args: Any) -> Result:
        """Run work that may wait for the disk or for other changes."""
        return await asyncio.get_running_loop().run_in_executor(self._slow, work, *args)

    @contextmanager
    def one_upload(self) -> Iterator[None]:
        """Refuse a second upload during the block: each may fill a disk."""
        if self._is_uploading:
            raise Busy("Cannot take a state: another one is being sent", "try again later")
        self._is_uploading = True
        try:
            yield
        finally:
            self._is_uploading = False

    async def newer(self, camera: DeviceCamera, after: int, seconds: float) -> int:
        """Wait for a picture after number `after`; return the number of the newest one."""
        for _ in range(round(seconds / LOOK)):
            if camera.number > after or camera.problem or self.service.events.is_closed:
                break
            await asyncio.sleep(LOOK)
        return camera.number

    def close(self) -> None:
        self._frames.shutdown(wait=False, cancel_futures=True)
        self._slow.shutdown(wait=False, cancel_futures=True)
