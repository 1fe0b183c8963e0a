<?php

declare(strict_types=1);

namespace Postern;

/**
 * A client. Keep one for the whole program; it holds no state but its settings. What is not given comes from
 * POSTERN_API_KEY and POSTERN_BASE_URL.
 */
final class Client extends Generated\Resources
{
    public const VERSION = '0.1.0';

    private readonly Transport $transport;

    /**
     * @param array{base_url?: string, timeout?: float, max_retries?: int, headers?: array<string, string>,
     *     logger?: \Closure, sleep?: \Closure} $settings `timeout` in seconds for each try, `max_retries` tries after
     *     the first, `logger` gets an array for each try
     */
    public function __construct(#[\SensitiveParameter] ?string $apiKey = null, array $settings = [])
    {
        $this->transport = new Transport($apiKey, $settings);
        parent::__construct($this->transport);
    }

    /**
     * Any operation, also one that this version does not know.
     *
     * @param array<string, mixed> $query
     * @param array<string, mixed> $options
     */
    public function request(string $method, string $path, array $query = [], mixed $json = null, array $options = []): mixed
    {
        $call = ['query' => $query, 'idempotent' => isset($options['idempotency_key'])];
        if ($json !== null) {
            $call['json'] = $json;
        }

        return $this->transport->request(strtoupper($method), $path, $call, $options);
    }

    /**
     * An attachment for `emails->send` from a file on the disk; `$fields` are its other fields, such as content_type.
     *
     * @param array<string, string> $fields
     * @return array<string, string>
     */
    public static function attachmentFromFile(string $path, array $fields = []): array
    {
        $content = file_get_contents($path);
        if ($content === false) {
            throw new PosternError("the file {$path} cannot be read");
        }

        return ['content' => base64_encode($content)] + $fields + ['filename' => basename($path)];
    }
}
