"""Client library for Postern: `Postern` and `AsyncPostern`, webhooks, and what is raised."""

from . import errors as errors
from . import webhooks as webhooks
from ._client import AsyncPostern, Postern, attachment_from_file
from ._pages import AsyncPage, Page
from ._request import VERSION as __version__
from ._request import RequestOptions, response_of
from ._transport import AsyncDownload, Download
from .errors import (
    AllSuppressedError,
    ApiError,
    AuthenticationError,
    ConflictError,
    ConnectionError,
    NotFoundError,
    PermissionError,
    PosternError,
    RateLimitError,
    ResponseMeta,
    ServerError,
    TimeoutError,
    ValidationError,
    WebhookSignatureError,
)

__all__ = [
    "AllSuppressedError",
    "ApiError",
    "AsyncDownload",
    "AsyncPage",
    "AsyncPostern",
    "AuthenticationError",
    "ConflictError",
    "ConnectionError",
    "Download",
    "NotFoundError",
    "Page",
    "PermissionError",
    "Postern",
    "PosternError",
    "RateLimitError",
    "RequestOptions",
    "ResponseMeta",
    "ServerError",
    "TimeoutError",
    "ValidationError",
    "WebhookSignatureError",
    "__version__",
    "attachment_from_file",
    "errors",
    "response_of",
    "webhooks",
]
