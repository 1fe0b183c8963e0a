<?php

declare(strict_types=1);

namespace Postern;

/** A webhook that cannot be trusted. Answer it with 400. */
final class WebhookSignatureError extends PosternError
{
    /**
     * @param string $reason missing_header, malformed_header, timestamp_too_old, timestamp_in_future, no_match,
     *     malformed_body or missing_secret
     */
    public function __construct(public readonly string $reason, string $message)
    {
        parent::__construct($message);
    }
}
