<?php

declare(strict_types=1);

namespace Postern;

/** 401: no key, or one that is not valid (any more). */
final class AuthenticationError extends ApiError
{
}
