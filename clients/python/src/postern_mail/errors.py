"""What goes wrong, by kind: an answer that is no success (ApiError), no answer (ConnectionError, TimeoutError), and a
webhook that cannot be trusted (WebhookSignatureError). No message ever holds the API key."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Dict, List, Mapping, Optional, Type


class PosternError(Exception):
    """Everything that this library raises."""


class ConnectionError(PosternError):  # noqa: A001 - the same name in every library
    """No answer came: the connection could not be made, or it broke."""


class TimeoutError(ConnectionError):  # noqa: A001
    """No answer came in time."""


@dataclass(frozen=True)
class RateLimit:
    """Requests of the present second: how many there may be, and how many are left. `reset` is in seconds."""

    limit: int
    remaining: int
    reset: Optional[int]


@dataclass(frozen=True)
class ResponseMeta:
    """What is known of an answer besides its body."""

    status: int
    headers: Mapping[str, str]
    request_id: Optional[str]
    rate_limit: Optional[RateLimit]


class ApiError(PosternError):
    """An answer that is no success. `code` is stable and for programs, the message is for people."""

    def __init__(self, message: str, response: ResponseMeta, body: Any) -> None:
        super().__init__(message)
        fields: Dict[str, Any] = body if isinstance(body, dict) else {}
        self.message = message
        self.status = response.status
        #: Empty where the answer was no error of the API's (a proxy's page, for example).
        self.code: str = fields["code"] if isinstance(fields.get("code"), str) else ""
        #: The field at fault, such as `attachments[0].filename`.
        self.field: Optional[str] = fields["field"] if isinstance(fields.get("field"), str) else None
        known = response.request_id or fields.get("request_id")
        self.request_id: Optional[str] = known if isinstance(known, str) else None
        #: The whole body: a dict, or the text where it was no JSON.
        self.body = body
        self.response = response


class ValidationError(ApiError):
    """400: the request is not right; `field` says where."""


class AuthenticationError(ApiError):
    """401: no key, or one that is not valid (any more)."""


class PermissionError(ApiError):  # noqa: A001
    """403: the key, the plan or the state of the organization or domain does not allow it."""


class NotFoundError(ApiError):
    """404."""


class ConflictError(ApiError):
    """409: it exists already, or its state does not allow it."""


class AllSuppressedError(ApiError):
    """422: each recipient is on a suppression list."""

    def __init__(self, message: str, response: ResponseMeta, body: Any) -> None:
        super().__init__(message, response, body)
        found = body.get("suppressed") if isinstance(body, dict) else None
        self.suppressed: List[Dict[str, str]] = found if isinstance(found, list) else []


class RateLimitError(ApiError):
    """429: which limit, and when to try again."""

    def __init__(self, message: str, response: ResponseMeta, body: Any) -> None:
        super().__init__(message, response, body)
        fields: Dict[str, Any] = body if isinstance(body, dict) else {}
        # Another server than Postern may give them another type.
        numbers = {name: value for name, value in fields.items() if type(value) is int}
        texts = {name: value for name, value in fields.items() if isinstance(value, str)}
        self.limit_type: str = texts.get("limit_type", "")
        self.limit: Optional[int] = numbers.get("limit")
        self.used: Optional[int] = numbers.get("used")
        #: Seconds.
        self.retry_after: Optional[int] = numbers.get("retry_after_seconds", retry_after_of(response.headers))
        self.warming_phase: str = texts.get("warming_phase", "")


class ServerError(ApiError):
    """5xx."""


class WebhookSignatureError(PosternError):
    """A webhook that cannot be trusted. Answer it with 400. `reason` is one of: missing_header, malformed_header,
    timestamp_too_old, timestamp_in_future, no_match, malformed_body, missing_secret."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


_BY_STATUS: Dict[int, Type[ApiError]] = {
    400: ValidationError,
    401: AuthenticationError,
    403: PermissionError,
    404: NotFoundError,
    409: ConflictError,
    422: AllSuppressedError,
    429: RateLimitError,
}


def error_of(response: ResponseMeta, body: Any) -> ApiError:
    """The error of its kind for an answer that is no success. `body` is parsed JSON, or text."""
    kind = _BY_STATUS.get(response.status) or (ServerError if response.status >= 500 else ApiError)
    return kind(_message_of(response.status, body), response, body)


def _message_of(status: int, body: Any) -> str:
    # The sentence of a 429 stands in `message`: its `error` is a word for programs.
    if isinstance(body, dict):
        for said in (body.get("message"), body.get("error")):
            if isinstance(said, str) and said != "":
                return said
    return f"the server answered {status}"


def retry_after_of(headers: Mapping[str, str]) -> Optional[int]:
    """Seconds of a Retry-After field (RFC 9110 §10.2.3): the server writes them, a proxy before it may write a date."""
    value = (headers.get("retry-after") or "").strip()
    if re.fullmatch(r"[0-9]+", value):
        return int(value[:18])
    if not value.endswith(" GMT"):
        return None
    try:
        at = parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0, math.ceil(at - time.time()))
