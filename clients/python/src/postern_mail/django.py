"""An e-mail backend for Django: `EMAIL_BACKEND = "postern_mail.django.EmailBackend"`, and an application that sends with
django.core.mail sends with Postern. The settings POSTERN_API_KEY and POSTERN_BASE_URL count before the variables of the
environment. `message.postern = {"tags": ["receipt"]}` gives fields that Django has no place for.
"""

from __future__ import annotations

import base64
import mimetypes
from email.message import Message
from email.mime.base import MIMEBase
from email.utils import formataddr, getaddresses
from typing import Any, Dict, List, Optional, Sequence

from django.conf import settings
from django.core.mail.backends.base import BaseEmailBackend

from ._client import Postern
from .errors import PosternError

#: Postern writes these itself.
_OWN = ("date", "message-id", "mime-version")
_PLACED = ("from", "to", "cc", "bcc", "reply-to", "subject")


class EmailBackend(BaseEmailBackend):
    """One connection serves many messages; `open` and `close` keep the HTTP connections between them."""

    def __init__(
        self,
        fail_silently: bool = False,
        api_key: Optional[str] = None,
        base_url: Optional[str] = None,
        client: Optional[Postern] = None,
        **_kwargs: Any,
    ) -> None:
        super().__init__(fail_silently=fail_silently)
        self._given = client
        self._api_key = api_key or getattr(settings, "POSTERN_API_KEY", None)
        self._base_url = base_url or getattr(settings, "POSTERN_BASE_URL", None)
        self._client: Optional[Postern] = client

    def open(self) -> bool:
        if self._client is not None:
            return False
        self._client = Postern(self._api_key, base_url=self._base_url)
        return True

    def close(self) -> None:
        if self._client is not None and self._given is None:
            self._client.close()
            self._client = None

    def send_messages(self, email_messages: Sequence[Any]) -> int:
        """How many were accepted. A failure is raised, unless `fail_silently`. Each message gets `postern_answer`."""
        sent = 0
        opened = False
        try:
            opened = self.open()
            for message in email_messages:
                sent += self._send(message)
        except PosternError:
            if not self.fail_silently:
                raise
        finally:
            if opened:
                self.close()
        return sent

    def _send(self, message: Any) -> int:
        assert self._client is not None
        if not message.recipients():
            return 0
        try:
            message.postern_answer = self._client.emails.send(request_of(message))
        except PosternError:
            if not self.fail_silently:
                raise
            return 0
        return 1


def request_of(message: Any) -> Any:
    """The body of POST /v1/send for a message of django.core.mail."""
    request: Dict[str, Any] = {
        "from": _addresses([message.extra_headers.get("From", message.from_email)])[0],
        "subject": str(message.subject),
        **_recipients(message),
        **_bodies(message),
    }
    if message.reply_to:
        request["reply_to"] = _addresses(message.reply_to)
    headers = {
        name: str(value)
        for name, value in message.extra_headers.items()
        if name.lower() not in _OWN + _PLACED
    }
    if headers:
        request["headers"] = headers
    attachments = [_attachment(given) for given in message.attachments]
    if attachments:
        request["attachments"] = attachments
    request.update(getattr(message, "postern", {}))
    return request


def _recipients(message: Any) -> Dict[str, List[str]]:
    to, cc, bcc = (_addresses(given) for given in (message.to, message.cc, message.bcc))
    if not to:
        to, cc = cc, []
    if not to and len(bcc) == 1:
        to, bcc = bcc, []
    if not to:
        raise PosternError("Postern needs a recipient in 'to'; send one mail to each who must not see the others")
    found = {"to": to, "cc": cc, "bcc": bcc}
    return {name: addresses for name, addresses in found.items() if addresses}


def _addresses(given: Sequence[Any]) -> List[str]:
    """A name outside ASCII stands as it is: the API writes the header."""
    found = []
    for text in given:
        for name, address in getaddresses([str(text)]):
            plain = name.isascii() or '"' in name
            found.append(formataddr((name, address)) if plain else f'"{name}" <{address}>')
    return found


def _bodies(message: Any) -> Dict[str, str]:
    bodies: Dict[str, str] = {}
    if message.body:
        bodies["html_body" if message.content_subtype == "html" else "text_body"] = str(message.body)
    for content, kind in getattr(message, "alternatives", None) or []:
        name = {"text/html": "html_body", "text/plain": "text_body"}.get(kind)
        if name is None or name in bodies:
            raise PosternError(f"Postern's API takes one HTML and one plain text, not a further body of {kind}; attach it")
        bodies[name] = content.decode() if isinstance(content, bytes) else str(content)
    return bodies


def _attachment(given: Any) -> Dict[str, str]:
    if isinstance(given, Message):
        return _mime_attachment(given)
    filename, content, kind = given
    data, content_type = _bytes_of(content), kind or mimetypes.guess_type(filename or "")[0]
    found = {"filename": filename or _named(content_type), "content": base64.b64encode(data).decode()}
    if content_type:
        found["content_type"] = content_type
    return found


def _bytes_of(content: Any) -> bytes:
    if isinstance(content, Message):
        return content.as_bytes()
    if hasattr(content, "message"):
        return bytes(content.message().as_bytes())
    return content.encode() if isinstance(content, str) else bytes(content)


def _mime_attachment(part: Message) -> Dict[str, str]:
    data = part.get_payload(decode=True) if isinstance(part, MIMEBase) or not part.is_multipart() else part.as_bytes()
    found = {
        "filename": part.get_filename() or _named(part.get_content_type()),
        "content": base64.b64encode(data if isinstance(data, bytes) else part.as_bytes()).decode(),
        "content_type": part.get_content_type(),
    }
    if part["Content-ID"]:
        found["content_id"] = str(part["Content-ID"])
    disposition = part.get_content_disposition()
    if disposition:
        found["disposition"] = disposition
    return found


def _named(content_type: Optional[str]) -> str:
    return "attachment" + (mimetypes.guess_extension(content_type or "") or ".bin")
