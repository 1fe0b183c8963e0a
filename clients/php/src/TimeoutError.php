<?php

declare(strict_types=1);

namespace Postern;

/** No answer came in time. */
final class TimeoutError extends ConnectionError
{
}
