<?php

declare(strict_types=1);

namespace Postern;

/**
 * A record of the API. Its fields are read as properties (`$email->subject`) or as of an array (`$email['subject']`);
 * those that this version does not know are kept.
 *
 * @implements \ArrayAccess<string, mixed>
 * @implements \IteratorAggregate<string, mixed>
 */
final class Record implements \ArrayAccess, \IteratorAggregate, \JsonSerializable
{
    public function __construct(private readonly \stdClass $fields, private readonly ?Response $response = null)
    {
    }

    /** The answer that it came with. */
    public function response(): ?Response
    {
        return $this->response;
    }

    /** @internal The record inside an answer. One without it did not come from Postern. */
    public function inside(string $name): mixed
    {
        if (!($this->fields->{$name} ?? null) instanceof \stdClass) {
            throw new ConnectionError("the answer has no '{$name}'");
        }

        return self::wrap($this->fields->{$name}, $this->response);
    }

    /** Objects become records, also within lists. */
    public static function wrap(mixed $value, ?Response $response = null): mixed
    {
        return match (true) {
            $value instanceof \stdClass => new self($value, $response),
            is_array($value) => array_map(static fn (mixed $inner): mixed => self::wrap($inner), $value),
            default => $value,
        };
    }

    /** @return array<string, mixed> nested arrays all the way down */
    public function toArray(): array
    {
        return json_decode(json_encode($this->fields, JSON_THROW_ON_ERROR), true, 512, JSON_THROW_ON_ERROR);
    }

    public function __get(string $name): mixed
    {
        return self::wrap($this->fields->{$name} ?? null);
    }

    public function __isset(string $name): bool
    {
        return isset($this->fields->{$name});
    }

    public function offsetExists(mixed $offset): bool
    {
        return isset($this->fields->{$offset});
    }

    public function offsetGet(mixed $offset): mixed
    {
        return $this->__get((string) $offset);
    }

    public function offsetSet(mixed $offset, mixed $value): void
    {
        throw new \LogicException('a record of the API cannot be changed; send the change to the API');
    }

    public function offsetUnset(mixed $offset): void
    {
        throw new \LogicException('a record of the API cannot be changed; send the change to the API');
    }

    public function getIterator(): \Iterator
    {
        foreach (get_object_vars($this->fields) as $name => $value) {
            yield $name => self::wrap($value);
        }
    }

    public function jsonSerialize(): \stdClass
    {
        return $this->fields;
    }
}
