<?php

declare(strict_types=1);

namespace Postern;

/** 400: the request is not right; `field` says where. */
final class ValidationError extends ApiError
{
}
