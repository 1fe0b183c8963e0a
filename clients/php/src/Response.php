<?php

declare(strict_types=1);

namespace Postern;

/** What is known of an answer besides its body. */
final class Response
{
    public readonly ?string $requestId;
    public readonly ?RateLimit $rateLimit;

    /** @param array<string, string> $headers names in lower case */
    public function __construct(public readonly int $status, public readonly array $headers)
    {
        $this->requestId = $headers['x-request-id'] ?? null;
        $limit = $this->number('ratelimit-limit');
        $remaining = $this->number('ratelimit-remaining');
        $this->rateLimit = $limit === null || $remaining === null
            ? null
            : new RateLimit($limit, $remaining, $this->number('ratelimit-reset'));
    }

    /** Seconds of a Retry-After field (RFC 9110 §10.2.3), of which the server writes only this form. */
    public function retryAfter(): ?int
    {
        return $this->number('retry-after');
    }

    private function number(string $name): ?int
    {
        $value = trim($this->headers[$name] ?? '');

        return preg_match('/^[0-9]+$/D', $value) === 1 ? (int) substr($value, 0, 18) : null;
    }
}
