"""Docker's client library on our own connections, its errors made ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import requests
import urllib3
import urllib3.connection
import urllib3.connectionpool
from docker import APIClient
from docker.errors import APIError, DockerException, InvalidVersion

from gpuconsole import __version__
from gpuconsole.core.errors import BadFile, ConsoleError, EngineRefused, EngineUnavailable
from gpuconsole.core.text import plain_line
from gpuconsole.engine.docker.dial import dial
from gpuconsole.engine.docker.refusals import refusal
from gpuconsole.engine.docker.unreachable import connection_lost, no_engine, timed_out
from gpuconsole.engine.endpoint import Endpoint

USER_AGENT = f"gpuconsole/{__version__}"
# As many as threads ask at once: for one more, urllib3 would write a warning on the screen.
_IDLE_CONNECTIONS = 64


class _Connection(urllib3.connection.HTTPConnection):
    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        super().__init__("engine", timeout=timeout_s)
        self._endpoint = endpoint

    def connect(self) -> None:
        self.sock = dial(self._endpoint)


class _Pool(urllib3.connectionpool.HTTPConnectionPool):
    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        super().__init__("engine", timeout=timeout_s, maxsize=_IDLE_CONNECTIONS)
        self._endpoint = endpoint
        self._timeout_s = timeout_s

    def _new_conn(self) -> _Connection:
        return _Connection(self._endpoint, self._timeout_s)


class EngineAdapter(requests.adapters.HTTPAdapter):
    """Sends requests to the engine, whatever the kind of its address; one for all threads."""

    def __init__(self, endpoint: Endpoint, *, timeout_s: float) -> None:
        super().__init__(max_retries=0)
        self._endpoint, self._timeout_s = endpoint, timeout_s
        self._pool = _Pool(endpoint, timeout_s)

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> _Pool:
        """The connections to the engine; a proxy is never between."""
        return self._pool

    def get_connection(self, *_: Any, **__: Any) -> _Pool:
        """The same, for older versions of requests."""
        return self._pool

    def request_url(self, request: requests.PreparedRequest, proxies: Mapping[str, str] | None) -> str:
        """What stands in the request line: the path alone."""
        del proxies
        return self._endpoint.base_path + request.path_url

    def forget_idle(self) -> None:
        """Close the connections that are idle: after one broke, the others are stale as well."""
        stale, self._pool = self._pool, _Pool(self._endpoint, self._timeout_s)
        stale.close()

    def close(self) -> None:
        """Close the connections that are idle, for good."""
        self._pool.close()


def client_for(adapter: EngineAdapter, *, api_version: str, timeout_s: float) -> APIClient:
    """A client of the library that talks through ``adapter``; it makes no request of its own.

    Raises:
        BadFile: Docker's configuration holds registry logins that cannot be understood.
    """
    try:
        # The address only says "no TCP": the adapter put in its place decides where requests go.
        client = APIClient(
            base_url="unix:///engine", version=api_version, timeout=int(timeout_s), user_agent=USER_AGENT
        )
    except (DockerException, ValueError, TypeError, AttributeError) as error:
        raise BadFile(
            f"Docker's configuration holds logins that cannot be understood: {plain_line(str(error))}.",
            hint="Look at auths in ~/.docker/config.json; 'docker login' writes an entry anew.",
        ) from error
    client.mount("http+docker://", adapter)
    # Else requests would look for a login of host "localhost" in ~/.netrc and send it along.
    client.trust_env = False
    return client


@contextmanager
def translated(endpoint: Endpoint, *, timeout_s: float | None = None) -> Iterator[None]:
    """Calls of Docker's client library inside raise our errors.

    Args:
        endpoint: The engine that is called.
        timeout_s: How long it was given, for the message.
    """
    try:
        yield
    except ConsoleError:
        raise
    except APIError as error:
        raise _answered_no(error) from error
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        raise _no_answer(endpoint, error, timeout_s) from error
    except InvalidVersion as error:
        raise EngineRefused(
            f"The engine at {endpoint.url} is too old for this: {plain_line(str(error))}.",
            hint="Docker Engine 20.10 or newer is needed.",
        ) from error
    except DockerException as error:
        raise EngineRefused(
            f"Docker's client library failed: {plain_line(str(error))}.",
            hint="Try the same with the docker command; if that works, 'pip install --upgrade docker'.",
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        # The library trips over an answer of another form than Docker's.
        raise no_engine(endpoint, f"{type(error).__name__}: {error}") from error


def _answered_no(error: APIError) -> ConsoleError:
    status = error.response.status_code if error.response is not None else 500
    return refusal(status, str(error.explanation or error))


def _no_answer(endpoint: Endpoint, error: Exception, timeout_s: float | None) -> ConsoleError:
    if isinstance(error, (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)):
        return timed_out(endpoint, after_s=timeout_s)
    if isinstance(error, (requests.exceptions.InvalidSchema, requests.exceptions.InvalidURL)):
        return EngineUnavailable(
            "The installed versions of the Python packages docker and requests do not work together.",
            hint="Upgrade both: pip install --upgrade docker requests.",
            detail=plain_line(str(error)),
        )
    if isinstance(error, requests.exceptions.JSONDecodeError):
        return no_engine(endpoint, str(error))
    # "Read timed out." comes as a plain connection error while a body is being read.
    if "timed out" in str(error):
        return timed_out(endpoint, after_s=timeout_s)
    return connection_lost(endpoint, str(error))
