<?php

declare(strict_types=1);

namespace Postern;

/** No answer came: the connection could not be made, or it broke. */
class ConnectionError extends PosternError
{
}
