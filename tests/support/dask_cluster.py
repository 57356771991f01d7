"""A Dask cluster of several processes, each at an address of its own.

Where network namespaces are allowed, scheduler and workers are in namespaces that a bridge joins,
and a worker may have folders hidden, as on another machine. Elsewhere they are at 127.0.0.x.
It is started as a program, because namespaces belong to a process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from waiting import wait

PORT = 8786
# Seconds to wait for several processes on a busy machine.
LONG = 120.0
BRIDGED = "LRTFLITE_TEST_BRIDGED"


def namespaces_allowed() -> bool:
    """Return whether this user may make network and mount namespaces, and join them."""
    script = "ip link add b type bridge && mount -t tmpfs none /mnt"
    try:
        return (
            subprocess.run(["unshare", "-rnm", "sh", "-c", script], capture_output=True).returncode
            == 0
        )
    except OSError:
        return False


class Cluster:
    """A scheduler and workers; a context manager that ends them all."""

    def __init__(self, folder: Path) -> None:
        self.bridged = bool(os.environ.get(BRIDGED))
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._workers = 0
        if self.bridged:
            run("ip link set lo up; ip link add br0 type bridge; ip addr add 10.77.0.1/24 dev br0")
            run("ip link set br0 up")
        self.host = "10.77.0.1" if self.bridged else "127.0.0.1"
        self.port = PORT if self.bridged else free_port()

    @property
    def address(self) -> str:
        return f"tcp://{self.host}:{self.port}"

    def scheduler(self) -> subprocess.Popen[bytes]:
        """Start the scheduler."""
        words = ["distributed.cli.dask_scheduler", "--host", self.host, "--port", str(self.port)]
        return self._start(["--no-dashboard", "--no-jupyter"], words, [])

    def worker(self, *, hidden: Sequence[Path] = ()) -> subprocess.Popen[bytes]:
        """Start a worker, from which folders are `hidden` where that is possible."""
        self._workers += 1
        number = self._workers + 1
        host = f"10.77.0.{number}" if self.bridged else f"127.0.0.{number}"
        prefix: list[str] = []
        if self.bridged:
            mounts = "; ".join(f"mount -t tmpfs none {each}" for each in hidden)
            script = f"{mounts or ':'}; exec sleep 600"
            holder = subprocess.Popen(["unshare", "-nm", "sh", "-c", script])
            self._started.append(holder)
            wait(lambda: namespace(holder.pid) != namespace(os.getpid()), patience=LONG)
            run(
                f"ip link add v{number} type veth peer name e{number}; "
                f"ip link set e{number} netns {holder.pid}; ip link set v{number} master br0 up"
            )
            inside = f"nsenter -t {holder.pid} -n"
            run(f"{inside} ip addr add {host}/24 dev e{number}; {inside} ip link set e{number} up")
            run(f"{inside} ip link set lo up")
            prefix = ["nsenter", "-t", str(holder.pid), "-n", "-m"]
        words = ["distributed.cli.dask_worker", self.address, "--host", host, "--nthreads", "1"]
        more = ["--no-nanny", "--no-dashboard", "--memory-limit", "2GB"]
        more += ["--local-directory", str(self._folder), "--death-timeout", "60"]
        cache = {"LRTFLITE_EXPERIMENT_CACHE": str(self._folder / f"cache{number}")}
        return self._start(more, words, prefix, **cache)

    def _start(
        self, more: list[str], words: list[str], prefix: list[str], **extra: str
    ) -> subprocess.Popen[bytes]:
        command = [*prefix, sys.executable, "-m", *words, *more]
        log = (self._folder / f"log{len(self._started)}").open("wb")
        with log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **extra}, cwd=self._folder
            )
        self._started.append(process)
        return process

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *ending: object) -> None:
        for process in self._started:
            process.kill()
        for process in self._started:
            process.wait()


def run(script: str) -> None:
    subprocess.run(["sh", "-ec", script], check=True)


def namespace(process: int) -> str:
    return os.readlink(f"/proc/{process}/ns/net")


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def lose_a_worker_and_the_scheduler(folder: Path, plan: Path, data: Path, out: Path) -> None:
    """Run a plan on two workers; kill one of them, then restart the scheduler in the middle."""
    command = [sys.executable, "-m", "lrtflite_cli.main", "experiment", str(plan)]

    def cells() -> int:
        return len(list(out.glob("cells/[0-9a-f]*.json")))

    with Cluster(folder) as cluster:
        scheduler = cluster.scheduler()
        near, far = cluster.worker(), cluster.worker(hidden=[data, out])
        experiment = subprocess.Popen([*command, "--out", str(out), "--scheduler", cluster.address])
        try:
            wait(lambda: cells() >= 2 or experiment.poll() is not None, patience=LONG)
            near.send_signal(signal.SIGKILL)
            count = cells()
            wait(lambda: cells() > count or experiment.poll() is not None, patience=LONG)
            scheduler.send_signal(signal.SIGKILL)
            scheduler.wait()
            far.wait()  # it ends with its scheduler, as clusters have it
            cluster.scheduler()
            cluster.worker()
            cluster.worker(hidden=[data, out])
            code = experiment.wait(LONG)
        finally:
            experiment.kill()
            experiment.wait()
    print("bridged" if cluster.bridged else "127.0.0.x", flush=True)
    sys.exit(code)


if __name__ == "__main__":
    lose_a_worker_and_the_scheduler(*map(Path, sys.argv[1:]))
