"""The clients: `Postern`, and `AsyncPostern` with the same methods to await."""

from __future__ import annotations

import asyncio
import base64
import time
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, Mapping, Optional, Union

import httpx

from ._generated.async_resources import AsyncResources
from ._generated.models import SendAttachment
from ._generated.resources import Resources
from ._request import RETRIES, TIMEOUT_S, Call, RequestOptions, settings_of
from ._transport import AsyncTransport, Transport

Logger = Callable[[Dict[str, Any]], None]


class Postern(Resources):
    """A client. Keep one for the whole program. What is not given comes from POSTERN_API_KEY and POSTERN_BASE_URL."""

    def __init__(
        self,
        api_key: Optional[str] = None,
        *,
        base_url: Optional[str] = None,
        timeout: float = TIMEOUT_S,
        max_retries: int = RETRIES,
        headers: Optional[Mapping[str, str]] = None,
        http_client: Optional[httpx.Client] = None,
        logger: Optional[Logger] = None,
        _sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        settings = settings_of(api_key, base_url, timeout, max_retries, headers, logger)
        self._transport = Transport(settings, http_client, _sleep)
        super().__init__(self._transport)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        json: Any = None,
        options: Optional[RequestOptions] = None,
    ) -> Any:
        """Any operation, also one that this version does not know."""
        return self._transport.request(_call(method, path, query, json, options), options)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> "Postern":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class AsyncPostern(AsyncResources):
    """A client whose methods are awaited."""

    def __init__(
        self,
        api_key: Optional[str] = None,
        *,
        base_url: Optional[str] = None,
        timeout: float = TIMEOUT_S,
        max_retries: int = RETRIES,
        headers: Optional[Mapping[str, str]] = None,
        http_client: Optional[httpx.AsyncClient] = None,
        logger: Optional[Logger] = None,
        _sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        settings = settings_of(api_key, base_url, timeout, max_retries, headers, logger)
        self._transport = AsyncTransport(settings, http_client, _sleep)
        super().__init__(self._transport)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        json: Any = None,
        options: Optional[RequestOptions] = None,
    ) -> Any:
        """Any operation, also one that this version does not know."""
        return await self._transport.request(_call(method, path, query, json, options), options)

    async def aclose(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> "AsyncPostern":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def _call(
    method: str, path: str, query: Optional[Mapping[str, Any]], json: Any, options: Optional[RequestOptions]
) -> Call:
    is_keyed = (options or {}).get("idempotency_key") is not None
    return Call(method.upper(), path, query or {}, json=json, has_json=json is not None, idempotent=is_keyed)


def attachment_from_file(path: Union[str, Path], **fields: Any) -> SendAttachment:
    """An attachment for `emails.send` from a file on the disk; `fields` are its other fields, such as content_type."""
    file = Path(path)
    content = base64.b64encode(file.read_bytes()).decode("ascii")
    attachment: Any = {"filename": file.name, **fields, "content": content}
    return attachment  # type: ignore[no-any-return]
