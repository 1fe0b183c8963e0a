<?php

declare(strict_types=1);

namespace Postern;

/** 403: the key, the plan or the state of the organization or domain does not allow it. */
final class PermissionError extends ApiError
{
}
