"""Lists: one page, and all items over all pages. Pages are asked for by cursor (`after`), which does not move when rows
are added meanwhile; the caller's own `offset` is kept for the first page only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Dict,
    Generator,
    Generic,
    Iterator,
    List,
    Mapping,
    Optional,
    TypeVar,
)

from .errors import ConnectionError

T = TypeVar("T")
LIMIT = 50


@dataclass(frozen=True)
class Listing:
    """`items` is the name of the list in the answer; `cursor`: it takes `after`."""

    items: str
    cursor: bool


class Page(Generic[T]):
    """One page. Iterating it gives its items and then those of the pages behind it, each asked for when it is needed."""

    def __init__(
        self, ask: Callable[[Mapping[str, Any]], Any], listing: Listing, query: Mapping[str, Any]
    ) -> None:
        answer = ask(query)
        self._ask, self._listing = ask, listing
        self._behind = next_query(answer, listing, query)
        self.items: List[T] = items_in(answer, listing)
        self.total: int = answer.get("total", len(self.items))
        self.total_is_at_least: bool = answer.get("total_is_at_least") is True
        self.has_more = self._behind is not None

    def next(self) -> Optional["Page[T]"]:
        """The page behind it; None on the last."""
        return None if self._behind is None else Page(self._ask, self._listing, self._behind)

    def __iter__(self) -> Iterator[T]:
        page: Optional[Page[T]] = self
        while page is not None:
            yield from page.items
            page = page.next()


class AsyncPage(Generic[T]):
    """One page of an async client."""

    def __init__(
        self,
        ask: Callable[[Mapping[str, Any]], Awaitable[Any]],
        listing: Listing,
        query: Mapping[str, Any],
        answer: Dict[str, Any],
    ) -> None:
        self._ask, self._listing = ask, listing
        self._behind = next_query(answer, listing, query)
        self.items: List[T] = items_in(answer, listing)
        self.total: int = answer.get("total", len(self.items))
        self.total_is_at_least: bool = answer.get("total_is_at_least") is True
        self.has_more = self._behind is not None

    async def next(self) -> Optional["AsyncPage[T]"]:
        return (
            None if self._behind is None else await AsyncPageCall[T](self._ask, self._listing, self._behind)
        )

    async def __aiter__(self) -> AsyncIterator[T]:
        page: Optional[AsyncPage[T]] = self
        while page is not None:
            for item in page.items:
                yield item
            page = await page.next()


class AsyncPageCall(Generic[T]):
    """A call that gives a page: await it for the page, or iterate it (`async for`) for all items."""

    def __init__(
        self, ask: Callable[[Mapping[str, Any]], Awaitable[Any]], listing: Listing, query: Mapping[str, Any]
    ) -> None:
        self._ask, self._listing, self._query = ask, listing, query

    async def _page(self) -> AsyncPage[T]:
        return AsyncPage(self._ask, self._listing, self._query, await self._ask(self._query))

    def __await__(self) -> Generator[Any, None, AsyncPage[T]]:
        return self._page().__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for item in await self._page():
            yield item


def items_in(answer: Mapping[str, Any], listing: Listing) -> List[Any]:
    """An answer without its rows did not come from Postern: it says nothing of how many there are."""
    items = answer.get(listing.items)
    if not isinstance(items, list):
        raise ConnectionError(f"the answer has no '{listing.items}'")
    return items


def next_query(
    answer: Mapping[str, Any], listing: Listing, query: Mapping[str, Any]
) -> Optional[Dict[str, Any]]:
    """None where this was the last page: it is shorter than its limit, or ends at the total."""
    items = items_in(answer, listing)
    if len(items) == 0 or len(items) < (answer.get("limit") or LIMIT):
        return None
    end = (answer.get("offset") or 0) + len(items)
    # With a cursor the answer's total counts rows before it, too.
    is_first = query.get("after") is None
    if is_first and not answer.get("total_is_at_least") and end >= answer.get("total", 0):
        return None
    kept = {name: value for name, value in query.items() if name not in ("offset", "after")}
    last = items[-1].get("id") if isinstance(items[-1], dict) else None
    return {**kept, "after": last} if listing.cursor and isinstance(last, str) else {**kept, "offset": end}
