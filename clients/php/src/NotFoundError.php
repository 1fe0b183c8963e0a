<?php

declare(strict_types=1);

namespace Postern;

/** 404. */
final class NotFoundError extends ApiError
{
}
