"""Options of ClustriX: those that have an effect here, and the meaning of the others.

There is no cluster here, but one server that runs functions at once. So no queue is chosen, no machine is rented and
no environment is created. A program may keep such options, and a note says what they mean here.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Mapping
from typing import Any

from .errors import ArgumentError

_QUEUES = "calls wait in the server's one queue"
_ENVIRONMENTS = "functions run in the server's own Python, with what is installed beside its PyTorch"
_MACHINES = "the server has its devices, and nothing is rented or set up"
_PLACES = "functions run on the server of `server=` or WARPGAUGE_SERVER"
_FILES = "nothing of a call is kept at the server, and no files are written"
_SECRETS = f"{_PLACES}, whose key is `api_key=` or WARPGAUGE_API_KEY"

# Options by their name or its beginning.
_OF_CLUSTER = {
    "partition": _QUEUES, "queue": _QUEUES, "environment": _ENVIRONMENTS, "provider": _MACHINES,
    "instance_type": _MACHINES, "region": _MACHINES, "platform": _MACHINES, "auto_provision": _MACHINES,
    "cluster_name": _MACHINES, "node_count": _MACHINES, "node_type": _MACHINES, "kubernetes_version": _MACHINES,
    "from_scratch": _MACHINES,
}  # fmt: skip
_OF_CONFIGURE = {
    "cluster_type": _PLACES, "cluster_host": _PLACES, "cluster_port": _PLACES, "username": _SECRETS,
    "password": _SECRETS, "key_file": _SECRETS, "default_partition": _QUEUES, "default_queue": _QUEUES,
    "remote_work_dir": _FILES, "local_work_dir": _FILES, "local_cache_dir": _FILES, "cleanup_on_success": _FILES,
    "conda_env_name": _ENVIRONMENTS, "python_executable": _ENVIRONMENTS, "package_manager": _ENVIRONMENTS,
    "use_two_venv": _ENVIRONMENTS, "venv_setup_timeout": _ENVIRONMENTS, "module_loads": _ENVIRONMENTS,
    "environment_variables": _ENVIRONMENTS, "pre_execution_commands": _ENVIRONMENTS,
    "job_poll_interval": "a call is waited for, and not asked for", "prefer_local_parallel": _PLACES,
    "local_parallel_threshold": _PLACES, "max_parallel_jobs": "`max_gpu_parallel_jobs` bounds the places of a call",
    "auto_provision_k8s": _MACHINES, "cloud_provider": _MACHINES, "cloud_region": _MACHINES,
    "cloud_auto_configure": _MACHINES,
}  # fmt: skip
_PREFIXES = ("k8s_", "aws_", "azure_", "gcp_", "lambda_", "hf_", "eks_", "aks_", "gke_")


def notes_of(call: str, given: Mapping[str, Any], known: list[str]) -> tuple[str, ...]:
    """Returns notes on options without an effect; each is a warning, too. An unknown option is an error."""
    meanings = _OF_CLUSTER if call == "cluster" else _OF_CONFIGURE
    notes = []
    for name, value in given.items():
        meaning = meanings.get(name) or (_MACHINES if name.startswith(_PREFIXES) else None)
        if meaning is None:
            near = difflib.get_close_matches(name, [*known, *meanings], 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ArgumentError(f"{call}() has no option {name!r}{hint}")
        if value is not None:
            notes.append(f"{name} has no effect here: {meaning}")
    for note in notes:
        warnings.warn(note, stacklevel=3)
    return tuple(notes)


def seconds_of(time: str | int | float) -> float:
    """Returns the seconds of a time limit in the form of batch systems: `"01:00:00"`, `"1-12:00:00"`, `"90:00"`, or
    minutes."""
    if isinstance(time, (int, float)):
        found = float(time) * 60
    else:
        match = re.fullmatch(r"\s*(?:(\d+)-)?(\d+)(?::(\d{1,2}))?(?::(\d{1,2}))?\s*", time)
        if match is None:
            raise ArgumentError(f"time {time!r} is none: write HH:MM:SS, D-HH:MM:SS, MM:SS, or minutes")
        days, *parts = (int(part) if part else None for part in match.groups())
        first, second, third = parts
        if days is not None or third is not None:
            hours, minutes, seconds = first, second, third
        else:
            hours, minutes, seconds = 0, first, second
        found = float((days or 0) * 86400 + (hours or 0) * 3600 + (minutes or 0) * 60 + (seconds or 0))
    if not found > 0:
        raise ArgumentError("time must be more than 0 seconds")
    return found
