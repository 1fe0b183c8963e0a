"""One request and its repetitions, without a connection: URL, headers, body, what an answer means, and what is worth
another try and when. The sync and the async client (_transport.py) do what is decided here."""

from __future__ import annotations

import json
import os
import platform
import random
import re
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Mapping, Optional, TypedDict, Union
from urllib.parse import quote, urlencode

from .errors import ConnectionError, PosternError, RateLimit, ResponseMeta, error_of, retry_after_of

VERSION = "0.1.0"
TIMEOUT_S = 30.0
RETRIES = 2
BACKOFF_S = 0.5
PORT_MAX = 65535
BACKOFF_S_MAX = 8.0
#: All waits of one call together.
WAIT_S_MAX = 60.0
#: Statuses that say "later", not "no".
WORTH_RETRYING = {500, 503}
WITHOUT_BODY = {204, 205}
#: The limits of a 429 that are over soon; the others last for hours.
SHORT_LIMITS = {"requests_per_second", "per_minute"}
REPEATABLE = {"GET", "HEAD", "PUT", "DELETE"}


class RequestOptions(TypedDict, total=False):
    """Settings of one call. With the same `idempotency_key` the stored answer comes again; where a call takes one and
    none is given, one is made. `timeout` is in seconds, for each try."""

    idempotency_key: str
    timeout: float
    max_retries: int
    headers: Mapping[str, str]


class Answer(Dict[str, Any]):
    """A record of the API. A dict like any other, which also knows the answer that it came with (`response_of`)."""

    response: Optional[ResponseMeta] = None


def response_of(result: object) -> Optional[ResponseMeta]:
    """Status, headers, request id and rate limit of the answer that a result came from."""
    return getattr(result, "response", None)


@dataclass
class Call:
    """What is asked. Values of `query` that are None are left out."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    has_json: bool = False
    content: Optional[bytes] = None
    answer: str = "json"
    idempotent: bool = False


@dataclass
class Settings:
    api_key: str = field(repr=False)
    base_url: str
    timeout: float
    max_retries: int
    headers: Mapping[str, str]
    logger: Optional[Callable[[Dict[str, Any]], None]]


def settings_of(
    api_key: Optional[str],
    base_url: Optional[str],
    timeout: float,
    max_retries: int,
    headers: Optional[Mapping[str, str]],
    logger: Optional[Callable[[Dict[str, Any]], None]],
) -> Settings:
    """Raises a PosternError where the key or the URL is missing or wrong."""
    key = api_key if api_key is not None else os.environ.get("POSTERN_API_KEY", "")
    if key == "":
        raise PosternError("no API key: give one, or set POSTERN_API_KEY")
    if re.search(r"[^\x21-\x7e]", key):
        raise PosternError("the API key holds a character that no key has")
    url = base_url if base_url is not None else os.environ.get("POSTERN_BASE_URL", "")
    known = re.fullmatch(r"https?://([^/?#\s]+)[^?#\s]*", url)
    port = known and re.search(r":([0-9]+)$", known.group(1))
    if not known or (port and int(port.group(1)[:6]) > PORT_MAX):
        raise PosternError(
            "no address: give base_url, or set POSTERN_BASE_URL, such as https://mail.example.eu"
        )
    return Settings(key, url.rstrip("/"), timeout, max_retries, headers or {}, logger)


def segment(value: str) -> str:
    """A segment of a path (RFC 3986 §3.3)."""
    return quote(value, safe="")


def url_of(settings: Settings, call: Call) -> str:
    _check_path(call.path)
    pairs = [(name, _text_of(value)) for name, value in call.query.items() if value is not None]
    return settings.base_url + call.path + ("?" + urlencode(pairs) if pairs else "")


def _check_path(path: str) -> None:
    # `..` as an id would make another path of it, on the way or at the server (RFC 3986 §5.2.4).
    if any(re.fullmatch(r"(?i)(\.|%2e){1,2}", part) for part in re.split(r"[?#]", path)[0].split("/")):
        raise PosternError(f"an id cannot be '.' or '..': {path}")


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)


def headers_of(settings: Settings, call: Call, options: RequestOptions) -> Dict[str, str]:
    of_call = {name.lower(): _checked_header(name, value) for name, value in _headers_in(options).items()}
    headers = {name.lower(): _checked_header(name, value) for name, value in settings.headers.items()}
    headers.update(of_call)
    headers["authorization"] = f"Bearer {settings.api_key}"
    headers["user-agent"] = f"postern-python/{VERSION} python/{platform.python_version()}"
    if call.answer == "json":
        headers["accept"] = "application/json"
    if call.has_json:
        headers["content-type"] = "application/json"
    elif call.content is not None:
        headers["content-type"] = "application/octet-stream"
    if call.idempotent:
        headers["idempotency-key"] = _idempotency_key_of(options.get("idempotency_key"), of_call)
    return headers


def _headers_in(options: RequestOptions) -> Mapping[str, str]:
    return options.get("headers") or {}


def _idempotency_key_of(given: Optional[str], headers: Mapping[str, str]) -> str:
    # The option, else the header of this call, else one made for it. An empty one would protect from nothing.
    key = headers.get("idempotency-key", f"auto_{uuid.uuid4()}") if given is None else given
    if _checked_header("Idempotency-Key", key).strip() == "":
        raise PosternError("the idempotency key is empty")
    return str(key)


def _checked_header(name: str, value: Any) -> str:
    # A line end would begin another header (RFC 9110 §5.5).
    if re.search(r"[^\t\x20-\x7e]", str(value)):
        raise PosternError(f"the header {name} may hold printable characters of ASCII only")
    return str(value)


def timeout_of(settings: Settings, call: Call, options: RequestOptions) -> float:
    """Seconds for one try: those of the call, or the client's and what the server was asked to wait (GET /v1/events)."""
    wait = call.query.get("wait")
    return options.get("timeout", settings.timeout + (wait if isinstance(wait, (int, float)) else 0))


def body_of(call: Call) -> Optional[bytes]:
    if not call.has_json:
        return call.content
    return json.dumps(call.json, ensure_ascii=False, separators=(",", ":"), default=_text_of).encode("utf-8")


# Answers -------------------------------------------------------------------------------------------------------------


@dataclass
class Failure:
    error: PosternError
    is_worth_retrying: bool
    retry_after: Optional[int] = None


def meta_of(status: int, headers: Mapping[str, str]) -> ResponseMeta:
    def number(name: str) -> Optional[int]:
        value = headers.get(name)
        return int(value) if value is not None and value.isdigit() else None

    limit, remaining = number("ratelimit-limit"), number("ratelimit-remaining")
    rate = (
        None if limit is None or remaining is None else RateLimit(limit, remaining, number("ratelimit-reset"))
    )
    return ResponseMeta(status, headers, headers.get("x-request-id"), rate)


def failure_of(meta: ResponseMeta, content: bytes) -> Failure:
    """Of an answer that is no success."""
    text = content.decode("utf-8", "replace")
    value = _json_of(text)
    body: Any = text if value is None else value
    limit_type = body.get("limit_type") if isinstance(body, dict) else None
    is_short = meta.status == 429 and limit_type in SHORT_LIMITS
    return Failure(
        error_of(meta, body), is_short or meta.status in WORTH_RETRYING, retry_after_of(meta.headers)
    )


def value_of(meta: ResponseMeta, content: bytes, call: Call) -> Union[Any, Failure]:
    """The answer of a success; None where it has no body. One that is not JSON did not come from Postern, or not whole."""
    if call.answer == "text":
        return content.decode("utf-8", "replace")
    if call.method == "HEAD" or meta.status in WITHOUT_BODY:
        return None
    value = _json_of(content)
    if not isinstance(value, dict):
        return Failure(ConnectionError(f"the answer ({meta.status}) is not JSON"), True)
    return with_meta(value, meta)


def _json_of(text: Union[str, bytes]) -> Any:
    # What is nested deeper than Python goes is no answer of Postern either.
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def with_meta(value: Any, meta: Optional[ResponseMeta]) -> Any:
    if not isinstance(value, dict):
        return value
    answer = Answer(value)
    answer.response = meta
    return answer


def inside(answer: Any, name: str) -> Any:
    """The record inside an answer. One without it did not come from Postern."""
    if not isinstance(answer.get(name), dict):
        raise ConnectionError(f"the answer has no '{name}'")
    return with_meta(answer[name], response_of(answer))


# Repetitions ---------------------------------------------------------------------------------------------------------


class Repetition:
    """Counts the tries of one call, and says how long to wait before the next one."""

    def __init__(
        self, settings: Settings, call: Call, headers: Mapping[str, str], options: RequestOptions
    ) -> None:
        is_repeatable = call.method in REPEATABLE or "idempotency-key" in headers
        self._tries = 1 + max(0, options.get("max_retries", settings.max_retries)) if is_repeatable else 1
        self._waited = 0.0
        self.attempt = 1

    def wait(self, failure: Failure) -> float:
        """Seconds; raises the failure where there is no other try."""
        wait = self._backoff(failure) if failure.is_worth_retrying and self.attempt < self._tries else None
        if wait is None or self._waited + wait > WAIT_S_MAX:
            raise failure.error
        self._waited += wait
        self.attempt += 1
        return wait

    def _backoff(self, failure: Failure) -> float:
        # As the server asks; else half a second, doubled with each try, and some of it by chance so that clients spread.
        if failure.retry_after is not None:
            return float(failure.retry_after)
        most: float = min(BACKOFF_S_MAX, BACKOFF_S * 2 ** (self.attempt - 1))
        return most * (0.75 + 0.25 * random.random())
