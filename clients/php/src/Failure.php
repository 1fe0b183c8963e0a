<?php

declare(strict_types=1);

namespace Postern;

/** @internal What came of one try that did not succeed. */
final class Failure
{
    public function __construct(
        public readonly PosternError $error,
        public readonly bool $isWorthRetrying,
        public readonly ?int $retryAfter,
    ) {
    }
}
