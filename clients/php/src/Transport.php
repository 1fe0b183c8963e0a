<?php

declare(strict_types=1);

namespace Postern;

/** One request and its repetitions: URL, headers, body, time limit, what is worth another try and when. */
final class Transport
{
    private const TIMEOUT_S = 30.0;
    private const RETRIES = 2;
    private const BACKOFF_S = 0.5;
    private const BACKOFF_S_MAX = 8.0;
    /** All waits of one call together. */
    private const WAIT_S_MAX = 60.0;
    /** Statuses that say "later", not "no". */
    private const WORTH_RETRYING = [500, 503];
    private const WITHOUT_BODY = [204, 205];
    /** The limits of a 429 that are over soon; the others last for hours. */
    private const SHORT_LIMITS = ['requests_per_second', 'per_minute'];
    private const REPEATABLE = ['GET', 'HEAD', 'PUT', 'DELETE'];

    private readonly string $apiKey;
    private readonly string $baseUrl;
    private readonly float $timeout;
    private readonly int $maxRetries;
    /** @var array<string, string> */
    private readonly array $headers;
    private readonly ?\Closure $logger;
    private readonly \Closure $sleep;

    /**
     * Throws a PosternError where the key or the address is missing or wrong.
     *
     * @param array{base_url?: string, timeout?: float, max_retries?: int, headers?: array<string, string>,
     *     logger?: \Closure, sleep?: \Closure} $settings
     */
    public function __construct(#[\SensitiveParameter] ?string $apiKey, array $settings)
    {
        $this->apiKey = self::checkedKey($apiKey ?? self::environment('POSTERN_API_KEY'));
        $this->baseUrl = self::checkedUrl($settings['base_url'] ?? self::environment('POSTERN_BASE_URL'));
        $this->timeout = $settings['timeout'] ?? self::TIMEOUT_S;
        $this->maxRetries = $settings['max_retries'] ?? self::RETRIES;
        $this->headers = $settings['headers'] ?? [];
        $this->logger = $settings['logger'] ?? null;
        $this->sleep = $settings['sleep'] ?? static function (float $seconds): void {
            usleep((int) round($seconds * 1_000_000));
        };
    }

    /** Without the key. @return array<string, mixed> */
    public function __debugInfo(): array
    {
        return ['baseUrl' => $this->baseUrl];
    }

    /** A segment of a path (RFC 3986 §3.3). */
    public static function segment(string $value): string
    {
        return rawurlencode($value);
    }

    /**
     * @param array{query?: array<string, mixed>, json?: mixed, bytes?: string, answer?: string, idempotent?: bool} $call
     * `sink`, for a download: a stream that is written to, or a function that gets each piece; the answer is then ''. What was
     * begun is not repeated, so that no piece comes twice.
     *
     * @param array{idempotency_key?: string, timeout?: float, max_retries?: int, headers?: array<string, string>,
     *     sink?: resource|\Closure} $options
     */
    public function request(string $method, string $path, array $call = [], array $options = []): mixed
    {
        self::checkPath($path);
        $headers = $this->headersOf($call, $options);
        $isRepeatable = in_array($method, self::REPEATABLE, true) || isset($headers['idempotency-key']);
        $tries = $isRepeatable ? 1 + max(0, $options['max_retries'] ?? $this->maxRetries) : 1;
        $waited = 0.0;
        for ($attempt = 1; ; $attempt++) {
            $outcome = $this->tryOnce($method, $path, ['headers' => $headers, 'attempt' => $attempt] + $call, $options);
            if (!$outcome instanceof Failure) {
                return $outcome;
            }
            $wait = $outcome->isWorthRetrying && $attempt < $tries ? self::backoff($outcome, $attempt) : null;
            if ($wait === null || $waited + $wait > self::WAIT_S_MAX) {
                throw $outcome->error;
            }
            $waited += $wait;
            ($this->sleep)($wait);
        }
    }

    private static function environment(string $name): string
    {
        $value = getenv($name);

        return $value === false ? '' : $value;
    }

    private static function checkedKey(#[\SensitiveParameter] string $key): string
    {
        if ($key === '') {
            throw new PosternError('no API key: give one, or set POSTERN_API_KEY');
        }
        if (preg_match('/[^\x21-\x7e]/', $key) === 1) {
            throw new PosternError('the API key holds a character that no key has');
        }

        return $key;
    }

    private static function checkedUrl(string $url): string
    {
        if (preg_match('#^https?://[^/?\#\s]+[^?\#\s]*$#D', $url) !== 1 || parse_url($url) === false) {
            throw new PosternError(
                'no address: give base_url, or set POSTERN_BASE_URL, such as https://mail.example.eu',
            );
        }

        return rtrim($url, '/');
    }

    /** @param array<string, mixed> $call @param array<string, mixed> $options @return array<string, string> */
    private function headersOf(array $call, array $options): array
    {
        $ofCall = self::checkedHeaders($options['headers'] ?? []);
        $headers = $ofCall + self::checkedHeaders($this->headers);
        $headers['authorization'] = "Bearer {$this->apiKey}";
        $headers['user-agent'] = 'postern-php/' . Client::VERSION . ' php/' . PHP_VERSION;
        if (($call['answer'] ?? 'json') === 'json') {
            $headers['accept'] = 'application/json';
        }
        if (array_key_exists('json', $call)) {
            $headers['content-type'] = 'application/json';
        } elseif (isset($call['bytes'])) {
            $headers['content-type'] = 'application/octet-stream';
        }
        if ($call['idempotent'] ?? false) {
            $headers['idempotency-key'] = self::idempotencyKeyOf($options['idempotency_key'] ?? null, $ofCall);
        }

        return $headers;
    }

    /**
     * The option, else the header of this call, else one made for it. An empty one would protect from nothing.
     *
     * @param array<string, string> $headers
     */
    private static function idempotencyKeyOf(?string $given, array $headers): string
    {
        $key = $given ?? $headers['idempotency-key'] ?? 'auto_' . self::uuid();
        if (trim(self::checkedHeader('Idempotency-Key', $key)) === '') {
            throw new PosternError('the idempotency key is empty');
        }

        return $key;
    }

    /** @param array<string, string> $given @return array<string, string> names in lower case */
    private static function checkedHeaders(array $given): array
    {
        $headers = [];
        foreach ($given as $name => $value) {
            $headers[strtolower($name)] = self::checkedHeader($name, (string) $value);
        }

        return $headers;
    }

    /** A line end would begin another header (RFC 9110 §5.5). */
    private static function checkedHeader(string $name, string $value): string
    {
        if (preg_match('/[^\t\x20-\x7e]/', $value) === 1) {
            throw new PosternError("the header {$name} may hold printable characters of ASCII only");
        }

        return $value;
    }

    /** `..` as an id would make another path of it, on the way or at the server (RFC 3986 §5.2.4). */
    private static function checkPath(string $path): void
    {
        foreach (explode('/', strtok($path, '?#') ?: '') as $segment) {
            if (preg_match('/^(\.|%2e){1,2}$/Di', $segment) === 1) {
                throw new PosternError("an id cannot be '.' or '..': {$path}");
            }
        }
    }

    private static function uuid(): string
    {
        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex(random_bytes(16)), 4));
    }

    /** As the server asks; else half a second, doubled with each try, and some of it by chance so that clients spread. */
    private static function backoff(Failure $failure, int $attempt): float
    {
        if ($failure->retryAfter !== null) {
            return (float) $failure->retryAfter;
        }
        $most = min(self::BACKOFF_S_MAX, self::BACKOFF_S * 2 ** ($attempt - 1));

        return $most * (0.75 + 0.25 * random_int(0, 1000) / 1000);
    }

    /** @param array<string, mixed> $query */
    private function urlOf(string $path, array $query): string
    {
        $pairs = [];
        foreach ($query as $name => $value) {
            if ($value !== null) {
                $pairs[] = rawurlencode($name) . '=' . rawurlencode(self::textOf($value));
            }
        }

        return $this->baseUrl . $path . ($pairs === [] ? '' : '?' . implode('&', $pairs));
    }

    private static function textOf(mixed $value): string
    {
        return match (true) {
            is_bool($value) => $value ? 'true' : 'false',
            $value instanceof \DateTimeInterface => self::timeOf($value),
            default => (string) $value,
        };
    }

    private static function timeOf(\DateTimeInterface $value): string
    {
        return \DateTimeImmutable::createFromInterface($value)
            ->setTimezone(new \DateTimeZone('UTC'))
            ->format('Y-m-d\TH:i:s.v\Z');
    }

    /** Times as RFC 3339; an empty body is an object, not a list. */
    private static function jsonOf(mixed $value): string
    {
        $plain = static function (mixed $inner) use (&$plain): mixed {
            return match (true) {
                $inner instanceof \DateTimeInterface => self::timeOf($inner),
                is_array($inner) => array_map($plain, $inner),
                default => $inner,
            };
        };
        $flags = JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION;

        return json_encode($value === [] ? new \stdClass() : $plain($value), $flags);
    }

    /** @param array<string, mixed> $call @param array<string, mixed> $options */
    private function tryOnce(string $method, string $path, array $call, array $options): mixed
    {
        $headers = [];
        $text = '';
        $streamed = false;
        $last = microtime(true);
        $isLate = false;
        $sink = ($call['answer'] ?? 'json') === 'json' ? null : self::sinkOf($options['sink'] ?? null);
        // And what the server was asked to wait before it answers (GET /v1/events).
        $wait = $call['query']['wait'] ?? 0;
        $timeout = (float) ($options['timeout'] ?? $this->timeout + (is_numeric($wait) ? (float) $wait : 0));
        $curl = curl_init($this->urlOf($path, $call['query'] ?? []));
        curl_setopt_array($curl, [
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_NOBODY => $method === 'HEAD',
            CURLOPT_HTTPHEADER => self::lines($call['headers']),
            CURLOPT_FOLLOWLOCATION => false,
            CURLOPT_WRITEFUNCTION => static function ($curl, string $piece) use (&$text, &$streamed, &$last, $sink): int {
                if ($sink !== null && intdiv((int) curl_getinfo($curl, CURLINFO_RESPONSE_CODE), 100) === 2) {
                    $streamed = true;
                    $sink($piece);
                } else {
                    $text .= $piece;
                }
                $last = microtime(true);

                return strlen($piece);
            },
            CURLOPT_HEADERFUNCTION => static function ($_curl, string $line) use (&$headers): int {
                if (str_starts_with($line, 'HTTP/')) {
                    $headers = []; // of a proxy's CONNECT, or of an answer before the answer (103)
                }
                [$name, $value] = array_pad(explode(':', $line, 2), 2, null);
                if ($value !== null) {
                    $headers[strtolower($name)] = trim($value);
                }

                return strlen($line);
            },
        ] + self::limits($timeout, ($call['answer'] ?? 'json') === 'bytes', $last, $isLate));
        $body = array_key_exists('json', $call) ? self::jsonOf($call['json']) : ($call['bytes'] ?? null);
        if ($body !== null) {
            curl_setopt($curl, CURLOPT_POSTFIELDS, $body);
        }
        $startedAt = microtime(true);
        $outcome = curl_exec($curl) === false
            ? self::brokenOff($isLate ? CURLE_OPERATION_TIMEDOUT : curl_errno($curl), curl_error($curl), $timeout, !$streamed)
            : self::readAnswer(new Response((int) curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $headers), $text, ['method' => $method] + $call);
        $this->log($method, $path, $call['attempt'], $startedAt, $outcome);

        return $outcome;
    }

    /**
     * The time limit of a whole try; for a download, of each piece, which curl looks for about once a second.
     *
     * @param float $last when the last piece came
     * @return array<int, mixed>
     */
    private static function limits(float $timeout, bool $isDownload, float &$last, bool &$isLate): array
    {
        $ms = (int) ceil($timeout * 1000);
        if (!$isDownload || $ms === 0) {
            return [CURLOPT_TIMEOUT_MS => $ms];
        }

        return [
            CURLOPT_CONNECTTIMEOUT_MS => $ms,
            CURLOPT_NOPROGRESS => false,
            CURLOPT_PROGRESSFUNCTION => static function () use ($timeout, &$last, &$isLate): int {
                $isLate = microtime(true) - $last > $timeout;

                return $isLate ? 1 : 0;
            },
        ];
    }

    /** What takes the pieces of a download; null where none is asked for. */
    private static function sinkOf(mixed $sink): ?\Closure
    {
        if ($sink === null || $sink instanceof \Closure) {
            return $sink;
        }
        if (!is_resource($sink)) {
            throw new PosternError('sink is neither a stream nor a function');
        }

        return static function (string $piece) use ($sink): void {
            for ($left = $piece; $left !== ''; $left = substr($left, $written)) {
                $written = fwrite($sink, $left);
                if ($written === false || $written === 0) {
                    throw new PosternError('the download cannot be written');
                }
            }
        };
    }

    /** @param array<string, string> $headers @return list<string> */
    private static function lines(array $headers): array
    {
        $lines = ['expect:'];
        foreach ($headers as $name => $value) {
            $lines[] = $value === '' ? "{$name};" : "{$name}: {$value}";
        }

        return $lines;
    }

    private static function brokenOff(int $code, string $reason, float $timeout, bool $isWorthRetrying): Failure
    {
        $error = $code === CURLE_OPERATION_TIMEDOUT
            ? new TimeoutError("no answer within {$timeout} s")
            : new ConnectionError("the connection failed: {$reason}");

        return new Failure($error, $isWorthRetrying, null);
    }

    /** @param array<string, mixed> $call */
    private static function readAnswer(Response $response, string $text, array $call): mixed
    {
        if ($response->status < 200 || $response->status > 299) {
            return self::failureOf($response, $text);
        }
        if (($call['answer'] ?? 'json') !== 'json') {
            return $text;
        }
        if ($call['method'] === 'HEAD' || in_array($response->status, self::WITHOUT_BODY, true)) {
            return null;
        }
        $value = json_decode($text);
        if ($value instanceof \stdClass) {
            return new Record($value, $response);
        }

        // A success whose body is not JSON did not come from Postern, or not whole.
        return new Failure(new ConnectionError("the answer ({$response->status}) is not JSON"), true, null);
    }

    private static function failureOf(Response $response, string $text): Failure
    {
        $body = json_decode($text, true);
        $body = is_array($body) ? $body : $text;
        $limitType = is_array($body) ? ($body['limit_type'] ?? null) : null;
        $isShort = $response->status === 429 && in_array($limitType, self::SHORT_LIMITS, true);
        $isWorthRetrying = $isShort || in_array($response->status, self::WORTH_RETRYING, true);

        return new Failure(ApiError::of($response, $body), $isWorthRetrying, $response->retryAfter());
    }

    /** Method, path, attempt, error, milliseconds. Never keys or bodies. */
    private function log(string $method, string $path, int $attempt, float $startedAt, mixed $outcome): void
    {
        if ($this->logger !== null) {
            $error = $outcome instanceof Failure ? $outcome->error->getMessage() : null;
            $ms = (int) round((microtime(true) - $startedAt) * 1000);
            ($this->logger)(compact('method', 'path', 'attempt', 'error', 'ms'));
        }
    }
}
