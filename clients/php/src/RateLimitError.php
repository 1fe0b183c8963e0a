<?php

declare(strict_types=1);

namespace Postern;

/** 429: which limit, and when to try again. */
final class RateLimitError extends ApiError
{
    public function limitType(): string
    {
        return $this->text('limit_type') ?? '';
    }

    public function limit(): ?int
    {
        return $this->number('limit');
    }

    public function used(): ?int
    {
        return $this->number('used');
    }

    /** Seconds. */
    public function retryAfter(): ?int
    {
        return $this->number('retry_after_seconds') ?? $this->response->retryAfter();
    }

    public function warmingPhase(): string
    {
        return $this->text('warming_phase') ?? '';
    }
}
