<?php

declare(strict_types=1);

namespace Postern;

/** 5xx. */
final class ServerError extends ApiError
{
}
