<?php

// Plays the conformance set (clients/conformance). CONFORMANCE_URL is the recording server. Prints what failed, and last
// one line: {"cases","passed","failed"}.

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    require __DIR__ . '/../src/' . str_replace('\\', '/', substr($class, strlen('Postern\\'))) . '.php';
});
set_error_handler(static function (int $level, string $message, string $file, int $line): never {
    throw new ErrorException($message, 0, $level, $file, $line);
});

const KEY = 'svc_test_conformance';
const BACKOFF_S_MAX = 8;
/** Where a library in PHP has another name for the same thing. */
const NAMES = ['code' => 'errorCode', 'request_id' => 'requestId', 'limit_type' => 'limitType',
    'retry_after' => 'retryAfter', 'warming_phase' => 'warmingPhase'];

$url = getenv('CONFORMANCE_URL');
$runner = 'php-' . str_replace('.', '-', PHP_VERSION);
$operations = json_decode(file_get_contents(__DIR__ . '/../../conformance/operations.json'), true);

function camel(string $name): string
{
    return lcfirst(str_replace('_', '', ucwords($name, '_')));
}

function plain(mixed $value): mixed
{
    return json_decode(json_encode($value, JSON_THROW_ON_ERROR), true);
}

function clientOf(object $given, string $base, array &$waits): Postern\Client
{
    putenv('POSTERN_API_KEY');
    putenv('POSTERN_BASE_URL');
    foreach ($given->env ?? [] as $name => $value) {
        putenv("{$name}=" . str_replace('$base', $base, $value));
    }
    $settings = ['sleep' => function (float $seconds) use (&$waits): void {
        $waits[] = $seconds;
    }];
    if (!property_exists($given, 'base_url') || $given->base_url !== null) {
        $settings['base_url'] = str_replace('$base', $base, $given->base_url ?? '$base');
    }
    if (isset($given->timeout_ms)) {
        $settings['timeout'] = $given->timeout_ms / 1000;
    }
    if (isset($given->max_retries)) {
        $settings['max_retries'] = $given->max_retries;
    }
    if (isset($given->headers)) {
        $settings['headers'] = (array) $given->headers;
    }

    return new Postern\Client(property_exists($given, 'api_key') ? $given->api_key : KEY, $settings);
}

function perform(Postern\Client $client, object $call): mixed
{
    global $operations;
    if (isset($call->twice)) {
        perform($client, $call->twice);

        return perform($client, $call->twice);
    }
    if (isset($call->request)) {
        $asked = $call->request;

        return $client->request($asked->method, $asked->path, (array) ($asked->query ?? []), $asked->json ?? null);
    }
    $place = $operations[$call->op];
    $target = $client;
    foreach ($place['resource'] as $name) {
        $target = $target->{camel($name)};
    }
    $values = array_map(static fn (string $name): string => $call->path->{$name}, $place['path']);
    if ($place['input'] === 'bytes') {
        $values[] = base64_decode($call->bytes_base64);
    } elseif ($place['input'] !== null) {
        $values[] = (array) ($call->input ?? []);
    }
    $options = json_decode(json_encode($call->options ?? []), true) + (isset($call->sink) ? ['sink' => $call->sink] : [])
        + (isset($call->piecewise) ? ['sink' => static fn (string $piece) => null] : []);
    if ($options !== []) {
        $values[] = $options;
    }

    return $target->{camel($place['method'])}(...$values);
}

function resultOf(Postern\Client $client, object $one): array
{
    $outcome = $one->outcome;
    if (isset($outcome->return_base64)) {
        // Downloads of bytes go piece by piece into a stream; those of texts are answered whole.
        $one->call->sink = fopen('php://memory', 'w+b');
        perform($client, $one->call);
        rewind($one->call->sink);

        return ['return_base64' => base64_encode(stream_get_contents($one->call->sink))];
    }
    $result = perform($client, $one->call);
    if (isset($outcome->page)) {
        return ['page' => ['items' => plain($result->items), 'total' => $result->total, 'has_more' => $result->hasMore]];
    }
    if ($result instanceof Postern\Page) {
        $items = [];
        foreach ($result as $item) {
            $items[] = plain($item);
            if (count($items) === ($one->call->take ?? null)) {
                break;
            }
        }

        return ['items' => $items];
    }
    $meta = isset($outcome->response) ? $result->response() : null;
    $rate = $meta?->rateLimit;

    return ['return' => plain($result), 'response' => $meta === null ? null : [
        'status' => $meta->status,
        'request_id' => $meta->requestId,
        'rate_limit' => $rate === null ? null : get_object_vars($rate),
    ]];
}

function play(object $one, string $base, array &$waits): array
{
    try {
        if (isset($one->call->verify)) {
            $asked = $one->call->verify;
            $body = base64_decode($asked->body_base64);
            $event = Postern\Webhooks::verify($body, $asked->header, $asked->secrets, $asked->tolerance ?? 300, $asked->now);

            return ['event' => plain($event)];
        }

        return resultOf(clientOf($one->client ?? new stdClass(), $base, $waits), $one);
    } catch (Throwable $raised) {
        return ['raised' => $raised];
    }
}

function expect(bool $holds, string $message): void
{
    if (!$holds) {
        throw new RuntimeException($message);
    }
}

function checkRaised(object $wanted, ?Throwable $raised, array $got): void
{
    expect($raised !== null, 'nothing was raised: ' . json_encode($got));
    expect($raised::class === "Postern\\{$wanted->class}", $raised::class . ': ' . $raised->getMessage() . $raised->getTraceAsString());
    foreach (plain($wanted) as $name => $value) {
        if ($name === 'class') {
            continue;
        }
        $own = NAMES[$name] ?? $name;
        $found = match (true) {
            $name === 'message' => $raised->getMessage(),
            method_exists($raised, $own) => $raised->{$own}(),
            default => $raised->{$own},
        };
        expect($found === $value, "{$name} is " . json_encode($found));
    }
    expect(!str_contains((string) $raised . print_r(get_object_vars($raised), true), KEY), 'the error shows the key');
}

function check(object $one, array $got, array $waits): void
{
    $outcome = $one->outcome;
    if (isset($outcome->raise)) {
        checkRaised($outcome->raise, $got['raised'] ?? null, $got);
    } elseif (isset($got['raised'])) {
        throw $got['raised'];
    } else {
        foreach (plain($outcome) as $name => $value) {
            expect(($got[$name] ?? null) == $value, "{$name} is " . json_encode($got[$name] ?? null));
        }
    }
    if (!isset($one->waits)) {
        return;
    }
    expect(count($waits) === count($one->waits), 'waits ' . json_encode($waits));
    foreach ($one->waits as $at => $wanted) {
        $wait = $waits[$at];
        expect($wanted === 'backoff' ? $wait > 0 && $wait <= BACKOFF_S_MAX : $wait == $wanted, 'waits ' . json_encode($waits));
    }
}

$cases = json_decode(file_get_contents("{$url}/cases"));
$failed = 0;
foreach ($cases as $index => $one) {
    try {
        $waits = [];
        $got = play($one, "{$url}/case/{$runner}/{$index}", $waits);
        check($one, $got, $waits);
        if (!isset($one->call->verify)) {
            $problems = json_decode(file_get_contents("{$url}/verdict/{$runner}/{$index}"))->problems;
            expect($problems === [], implode('; ', $problems));
        }
    } catch (Throwable $error) {
        $failed++;
        echo "✖ {$one->name}: " . $error::class . ' ' . $error->getMessage() . "\n";
    }
}
echo json_encode(['cases' => count($cases), 'passed' => count($cases) - $failed, 'failed' => $failed]), "\n";
exit($failed > 0 ? 1 : 0);
