<?php

declare(strict_types=1);

namespace Postern;

/** Everything that this library throws. No message ever holds the API key. */
class PosternError extends \RuntimeException
{
}
