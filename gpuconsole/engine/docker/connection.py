"""The way to one engine: version agreed on, clients, exchanges, and all of them closed together."""

from __future__ import annotations

import json
import math
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from docker import APIClient

from gpuconsole.core.errors import ConsoleError, EngineRefused, UsageError
from gpuconsole.core.text import plain_line
from gpuconsole.engine.docker.dial import CONNECT_TIMEOUT_S
from gpuconsole.engine.docker.exchange import Exchange, ExchangeClosed
from gpuconsole.engine.docker.refusals import refusal
from gpuconsole.engine.docker.transport import EngineAdapter, client_for, translated
from gpuconsole.engine.docker.unreachable import ConnectionLost, no_engine
from gpuconsole.engine.endpoint import Endpoint

OLDEST_API = (1, 40)
"""The first version that can ask for GPUs (Docker 19.03)."""
NEWEST_API = (1, 51)
"""The newest version whose answers are known here (Docker 28)."""

_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """The version of the engine's interface that is spoken, and what the engine said of itself."""

    agreed: str
    minimum: str
    answer: Mapping[str, Any]


def negotiated(endpoint: Endpoint, *, timeout_s: float = CONNECT_TIMEOUT_S) -> ApiVersion:
    """Ask the engine which versions it speaks and take the newest that both know.

    Raises:
        UsageError: ``DOCKER_API_VERSION`` allows none that both know.
        ConsoleError: Nothing answers, it is no engine, or it is too old.
    """
    _refuse_limit_below(endpoint, OLDEST_API, "gpuconsole needs")
    raw = Exchange(endpoint, "GET", "/version", answer_timeout_s=timeout_s).whole(timeout_s=timeout_s)
    try:
        answer = json.loads(raw)
        newest = _numbers(answer["ApiVersion"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise no_engine(endpoint, raw[:200].decode(errors="replace")) from error
    try:
        oldest = _numbers(answer.get("MinAPIVersion") or "1.12")
    except (ValueError, TypeError):
        oldest = (1, 12)
    if newest < OLDEST_API:
        raise EngineRefused(
            f"The engine at {endpoint.url} is too old: Docker {plain_line(str(answer.get('Version', '?')))}.",
            hint="Docker Engine 20.10 or newer is needed.",
        )
    _refuse_limit_below(endpoint, oldest, f"the engine at {endpoint.url} speaks")
    agreed = max(oldest, min(newest, NEWEST_API, endpoint.api_limit or NEWEST_API))
    return ApiVersion(agreed=_written(agreed), minimum=_written(oldest), answer=answer)


def _refuse_limit_below(endpoint: Endpoint, least: tuple[int, int], who: str) -> None:
    limit = endpoint.api_limit
    if limit is not None and limit < least:
        raise UsageError(
            f"DOCKER_API_VERSION is {_written(limit)}, and {who} {_written(least)} at least.",
            hint=f"Unset it, or set it to {_written(least)} or newer.",
        )


def _numbers(version: str) -> tuple[int, int]:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(version)
    return int(match[1]), int(match[2])


def _written(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


class Connection:
    """The way to one engine, for all threads.

    Each thread has a client of Docker's library for itself, since the library promises nothing about sharing one;
    they share idle connections. Each stream has a connection of its own.

    Args:
        endpoint: Where the engine is.
        version: What was agreed on with it.
        timeout_s: How long an ordinary call may take.
    """

    def __init__(self, endpoint: Endpoint, version: ApiVersion, *, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        self.endpoint = endpoint
        self.version = version
        self.timeout_s = timeout_s
        self._adapter = EngineAdapter(endpoint, timeout_s=timeout_s)
        self._clients = threading.local()
        self._exchanges: weakref.WeakSet[Exchange] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, question: Callable[[APIClient], Result]) -> Result:
        """The answer to a call that changes nothing; asked again once if the connection breaks.

        An engine that was restarted has closed the connections kept for it, which shows only when one is used.
        """
        try:
            return self.tell(question)
        except ConnectionLost:
            self._adapter.forget_idle()
            return self.tell(question)

    def tell(self, order: Callable[[APIClient], Result], *, timeout_s: float | None = None) -> Result:
        """The answer to a call that may change something, made once.

        Args:
            order: The call.
            timeout_s: How long it may take, when not the ordinary time.
        """
        if self._closed:
            raise ExchangeClosed
        client = self._client()
        limit_s = timeout_s or self.timeout_s
        client.timeout = math.ceil(limit_s)
        with translated(self.endpoint, timeout_s=limit_s):
            return order(client)

    def _client(self) -> APIClient:
        client: APIClient | None = getattr(self._clients, "client", None)
        if client is None:
            client = client_for(self._adapter, api_version=self.version.agreed, timeout_s=self.timeout_s)
            self._clients.client = client
        return client

    def exchange(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | None] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        hijack: bool = False,
        answer_timeout_s: float | None = CONNECT_TIMEOUT_S,
        refused: Callable[[int, str], ConsoleError] = refusal,
    ) -> Exchange:
        """A request of its own at ``path`` of the agreed version, not yet sent; closed with the connection.

        Raises:
            ExchangeClosed: The connection was closed.
        """
        exchange = Exchange(
            self.endpoint,
            method,
            f"/v{self.version.agreed}{path}",
            query=query,
            body=body,
            headers=headers,
            hijack=hijack,
            answer_timeout_s=answer_timeout_s,
            refused=refused,
        )
        with self._lock:
            if self._closed:
                raise ExchangeClosed
            self._exchanges.add(exchange)
        return exchange

    def at_least(self, version: str) -> bool:
        """Whether the agreed version is ``version`` or newer."""
        return _numbers(self.version.agreed) >= _numbers(version)

    def close(self) -> None:
        """Close every connection and end every stream."""
        with self._lock:
            self._closed = True
            exchanges = list(self._exchanges)
        for exchange in exchanges:
            exchange.close()
        self._adapter.close()
