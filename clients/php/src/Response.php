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

    /** Seconds of a Retry-After field (RFC 9110 §10.2.3): the server writes them, a proxy before it may write a date. */
    public function retryAfter(): ?int
    {
        $date = \DateTimeImmutable::createFromFormat(
            'D, d M Y H:i:s \G\M\T',
            trim($this->headers['retry-after'] ?? ''),
            new \DateTimeZone('UTC'),
        );

        return $date === false ? $this->number('retry-after') : max(0, $date->getTimestamp() - time());
    }

    private function number(string $name): ?int
    {
        $value = trim($this->headers[$name] ?? '');

        return preg_match('/^[0-9]+$/D', $value) === 1 ? (int) substr($value, 0, 18) : null;
    }
}
