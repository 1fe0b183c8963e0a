<?php

declare(strict_types=1);

namespace Postern;

/**
 * One page of a list. Iterating it gives its items and then those of the pages behind it, each asked for when it is
 * needed. Pages are asked for by cursor (`after`), which does not move when rows are added meanwhile.
 *
 * @implements \IteratorAggregate<int, Record>
 */
final class Page implements \IteratorAggregate
{
    private const LIMIT = 50;

    /** @var list<Record> */
    public readonly array $items;
    /** How many rows there are in all; at least so many where `totalIsAtLeast` is true. */
    public readonly int $total;
    public readonly bool $totalIsAtLeast;
    public readonly bool $hasMore;
    /** @var array<string, mixed>|null */
    private readonly ?array $behind;

    /**
     * @param string $name of the list in the answer
     * @param bool $cursor whether it takes `after`
     * @param array<string, mixed> $query
     * @param \Closure(array<string, mixed>): Record $ask
     */
    public function __construct(
        private readonly string $name,
        private readonly bool $cursor,
        array $query,
        private readonly \Closure $ask,
    ) {
        $answer = $ask($query);
        if (!is_array($answer[$name])) {
            // It did not come from Postern: it says nothing of how many rows there are.
            throw new ConnectionError("the answer has no '{$name}'");
        }
        $this->items = $answer[$name];
        $this->total = $answer['total'] ?? count($this->items);
        $this->totalIsAtLeast = $answer['total_is_at_least'] === true;
        $this->behind = $this->behind($answer, $query);
        $this->hasMore = $this->behind !== null;
    }

    /** The page behind it; null on the last. */
    public function next(): ?self
    {
        return $this->behind === null ? null : new self($this->name, $this->cursor, $this->behind, $this->ask);
    }

    /** @return \Generator<int, Record> */
    public function getIterator(): \Generator
    {
        for ($page = $this; $page !== null; $page = $page->next()) {
            foreach ($page->items as $item) {
                yield $item;
            }
        }
    }

    /**
     * Null where this was the last page: it is shorter than its limit, or ends at the total.
     *
     * @param array<string, mixed> $query
     * @return array<string, mixed>|null
     */
    private function behind(Record $answer, array $query): ?array
    {
        if ($this->items === [] || count($this->items) < ($answer['limit'] ?? self::LIMIT)) {
            return null;
        }
        $end = ($answer['offset'] ?? 0) + count($this->items);
        // With a cursor the answer's total counts rows before it, too.
        if (!isset($query['after']) && !$this->totalIsAtLeast && $end >= $this->total) {
            return null;
        }
        unset($query['offset'], $query['after']);
        $last = $this->items[count($this->items) - 1];
        $id = $last instanceof Record ? $last['id'] : null;

        return $this->cursor && is_string($id) ? ['after' => $id] + $query : ['offset' => $end] + $query;
    }
}
