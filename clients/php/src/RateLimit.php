<?php

declare(strict_types=1);

namespace Postern;

/** Requests of the present second: how many there may be, and how many are left. `reset` is in seconds. */
final class RateLimit
{
    public function __construct(
        public readonly int $limit,
        public readonly int $remaining,
        public readonly ?int $reset,
    ) {
    }
}
