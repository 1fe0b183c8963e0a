<?php

declare(strict_types=1);

namespace Postern;

/** 422: each recipient is on a suppression list. */
final class AllSuppressedError extends ApiError
{
    /** @return list<array{email: string, reason: string}> */
    public function suppressed(): array
    {
        $list = $this->value('suppressed');

        return is_array($list) ? $list : [];
    }
}
