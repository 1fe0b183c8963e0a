"""Webhooks: whether a call came from your Postern, and which event it brings. The signature is the header
`X-Service-Signature: t=<unix seconds>,v1=<hex>`, an HMAC-SHA256 of `<t>.<body>` with the whole `whsec_…` secret; while a
rotation lasts there are two `v1`. Verify the bytes as they came: JSON that was parsed and written again is another text."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from typing import List, NoReturn, Optional, Sequence, Tuple, Union, cast

from ._generated.models import Event
from .errors import WebhookSignatureError

#: The header that `verify` wants the value of.
SIGNATURE_HEADER = "X-Service-Signature"
TOLERANCE_S = 300
HEADER_LENGTH_MAX = 4096


def verify(
    body: Union[bytes, str],
    header: Optional[str],
    secrets: Union[str, None, Sequence[Optional[str]]],
    *,
    tolerance: int = TOLERANCE_S,
    now: Optional[int] = None,
) -> Event:
    """The event of a webhook call; several secrets may be given, one that is None is passed over. Raises a WebhookSignatureError with its
    `reason` where the call cannot be trusted. `tolerance` is in seconds, `now` in Unix seconds."""
    content = body.encode("utf-8") if isinstance(body, str) else body
    t, signatures = _read_header(header)
    keys = [secret for secret in ([secrets] if isinstance(secrets, str) else secrets or []) if secret]
    if not keys:
        _fail("missing_secret", "no secret was given to verify the webhook with")
    age = (int(time.time()) if now is None else now) - t
    if age > tolerance:
        _fail("timestamp_too_old", f"the webhook was signed {age} s ago")
    if -age > tolerance:
        _fail("timestamp_in_future", f"the webhook was signed {-age} s ahead of this clock")
    wanted = [_signature(content, key, t) for key in keys]
    if not any(hmac.compare_digest(given, one) for one in wanted for given in signatures):
        _fail("no_match", "no signature of the webhook matches a secret")
    return _read_event(content)


def sign(body: Union[bytes, str], secret: str, t: Optional[int] = None) -> str:
    """A header for a test of your own receiver."""
    content = body.encode("utf-8") if isinstance(body, str) else body
    at = int(time.time()) if t is None else t
    return f"t={at},v1={_signature(content, secret, at)}"


def _signature(content: bytes, secret: str, t: int) -> str:
    return hmac.new(secret.encode("utf-8"), f"{t}.".encode("ascii") + content, hashlib.sha256).hexdigest()


def _read_header(header: Optional[str]) -> Tuple[int, List[str]]:
    if not header:
        _fail("missing_header", "the webhook has no X-Service-Signature")
    if len(header) > HEADER_LENGTH_MAX:
        _fail("malformed_header", "X-Service-Signature is too long")
    fields = [part.strip().partition("=")[::2] for part in header.split(",")]
    times = [value for name, value in fields if name == "t"]
    if len(times) != 1 or not re.fullmatch(r"[0-9]{1,12}", times[0]):
        _fail("malformed_header", "X-Service-Signature has no one time")
    signatures = [value for name, value in fields if name == "v1" and re.fullmatch(r"[0-9a-f]{64}", value)]
    if not signatures:
        _fail("malformed_header", "X-Service-Signature has no v1 signature")
    return int(times[0]), signatures


def _read_event(content: bytes) -> Event:
    try:
        event = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        _fail("malformed_body", "the webhook's body is not JSON")
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        _fail("malformed_body", "the webhook's body is not an event")
    return cast(Event, event)


def _fail(reason: str, message: str) -> NoReturn:
    raise WebhookSignatureError(reason, message)
