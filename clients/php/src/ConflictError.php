<?php

declare(strict_types=1);

namespace Postern;

/** 409: it exists already, or its state does not allow it. */
final class ConflictError extends ApiError
{
}
