"""The sync and the async connection, over httpx. What is decided is in _request.py."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Callable, Iterator, Optional, Type

import httpx

from ._request import (
    Call,
    Failure,
    Repetition,
    RequestOptions,
    Settings,
    body_of,
    failure_of,
    headers_of,
    meta_of,
    timeout_of,
    url_of,
    value_of,
)
from .errors import ConnectionError, PosternError, ResponseMeta, TimeoutError


class Download:
    """The bytes of an answer, as they come. Read it, or iterate it; `close` it where neither is done. Each piece has the
    call's whole time limit again."""

    def __init__(self, stream: httpx.Response, meta: ResponseMeta, timeout: float) -> None:
        self._stream = stream
        self._timeout = timeout
        self.response = meta

    def read(self) -> bytes:
        return b"".join(self)

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._stream.iter_bytes()
        except httpx.HTTPError as error:
            raise _failed(error, self._timeout).error from error
        finally:
            self._stream.close()

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> "Download":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class AsyncDownload:
    """The bytes of an answer, as they come. Read it, or iterate it; `aclose` it where neither is done. Each piece has the
    call's whole time limit again."""

    def __init__(self, stream: httpx.Response, meta: ResponseMeta, timeout: float) -> None:
        self._stream = stream
        self._timeout = timeout
        self.response = meta

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream.aiter_bytes():
                yield piece
        except httpx.HTTPError as error:
            raise _failed(error, self._timeout).error from error
        finally:
            await self._stream.aclose()

    async def aclose(self) -> None:
        await self._stream.aclose()


def _failed(error: httpx.HTTPError, timeout: float) -> Failure:
    if isinstance(error, httpx.TimeoutException):
        return Failure(TimeoutError(f"no answer within {timeout:g} s"), True)
    return Failure(ConnectionError(f"the connection failed: {error}"), True)


class _Limit:
    """httpx limits each read; an answer that comes in drops would have time without end."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._until = time.monotonic() + timeout

    def check(self) -> None:
        if time.monotonic() > self._until:
            raise httpx.ReadTimeout(f"no whole answer within {self._timeout:g} s")


class Transport:
    def __init__(
        self, settings: Settings, client: Optional[httpx.Client], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._settings = settings
        self._client = client or httpx.Client()
        self._sleep = sleep

    def request(self, call: Call, options: Optional[RequestOptions] = None) -> Any:
        given: RequestOptions = options or {}
        headers = headers_of(self._settings, call, given)
        repetition = Repetition(self._settings, call, headers, given)
        while True:
            outcome = self._try(call, headers, given, repetition.attempt)
            if not isinstance(outcome, Failure):
                return outcome
            self._sleep(repetition.wait(outcome))

    def _try(self, call: Call, headers: Any, options: RequestOptions, attempt: int) -> Any:
        timeout = timeout_of(self._settings, call, options)
        log = _Log(self._settings, call, attempt)
        limit = _Limit(timeout)
        try:
            request = self._client.build_request(
                call.method,
                url_of(self._settings, call),
                headers=headers,
                content=body_of(call),
                timeout=timeout,
            )
            response = self._client.send(request, stream=True, follow_redirects=False)
            meta = meta_of(response.status_code, response.headers)
            log.answered(response.status_code)
            if call.answer == "bytes" and response.is_success:
                return Download(response, meta, timeout)
            pieces = []
            try:
                for piece in response.iter_bytes():
                    limit.check()
                    pieces.append(piece)
            finally:
                response.close()
            content = b"".join(pieces)
            return value_of(meta, content, call) if response.is_success else failure_of(meta, content)
        except httpx.InvalidURL as error:
            raise PosternError(f"the address cannot be asked: {error}") from error
        except httpx.HTTPError as error:
            failure = _failed(error, timeout)
            log.failed(failure)
            return failure

    def close(self) -> None:
        self._client.close()


class AsyncTransport:
    def __init__(
        self,
        settings: Settings,
        client: Optional[httpx.AsyncClient],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._client = client or httpx.AsyncClient()
        self._sleep = sleep

    async def request(self, call: Call, options: Optional[RequestOptions] = None) -> Any:
        given: RequestOptions = options or {}
        headers = headers_of(self._settings, call, given)
        repetition = Repetition(self._settings, call, headers, given)
        while True:
            outcome = await self._try(call, headers, given, repetition.attempt)
            if not isinstance(outcome, Failure):
                return outcome
            await self._sleep(repetition.wait(outcome))

    async def _try(self, call: Call, headers: Any, options: RequestOptions, attempt: int) -> Any:
        timeout = timeout_of(self._settings, call, options)
        log = _Log(self._settings, call, attempt)
        limit = _Limit(timeout)
        try:
            request = self._client.build_request(
                call.method,
                url_of(self._settings, call),
                headers=headers,
                content=body_of(call),
                timeout=timeout,
            )
            response = await self._client.send(request, stream=True, follow_redirects=False)
            meta = meta_of(response.status_code, response.headers)
            log.answered(response.status_code)
            if call.answer == "bytes" and response.is_success:
                return AsyncDownload(response, meta, timeout)
            pieces = []
            try:
                async for piece in response.aiter_bytes():
                    limit.check()
                    pieces.append(piece)
            finally:
                await response.aclose()
            content = b"".join(pieces)
            return value_of(meta, content, call) if response.is_success else failure_of(meta, content)
        except httpx.InvalidURL as error:
            raise PosternError(f"the address cannot be asked: {error}") from error
        except httpx.HTTPError as error:
            failure = _failed(error, timeout)
            log.failed(failure)
            return failure

    async def close(self) -> None:
        await self._client.aclose()


class _Log:
    """Tells the caller's logger of one try: method, path, status or error, milliseconds. Never of keys or bodies."""

    def __init__(self, settings: Settings, call: Call, attempt: int) -> None:
        self._logger = settings.logger
        self._line = {"method": call.method, "path": call.path, "attempt": attempt}
        self._started = time.monotonic()

    def answered(self, status: int) -> None:
        self._write(status, None)

    def failed(self, failure: Failure) -> None:
        self._write(None, str(failure.error))

    def _write(self, status: Optional[int], error: Optional[str]) -> None:
        if self._logger:
            ms = round((time.monotonic() - self._started) * 1000)
            self._logger({**self._line, "status": status, "error": error, "ms": ms})
