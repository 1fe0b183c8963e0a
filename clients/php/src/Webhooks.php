<?php

declare(strict_types=1);

namespace Postern;

/**
 * Webhooks: whether a call came from your Postern, and which event it brings. The signature is the header
 * `X-Service-Signature: t=<unix seconds>,v1=<hex>`, an HMAC-SHA256 of `<t>.<body>` with the whole `whsec_…` secret; while a
 * rotation lasts there are two `v1`. Verify the bytes as they came (`file_get_contents('php://input')`): JSON that was
 * parsed and written again is another text.
 */
final class Webhooks
{
    public const SIGNATURE_HEADER = 'X-Service-Signature';
    private const TOLERANCE_S = 300;
    private const HEADER_LENGTH_MAX = 4096;

    /**
     * The event. Throws a WebhookSignatureError with its reason where the call cannot be trusted.
     *
     * @param string|list<string|null>|null $secrets one that is null is passed over
     * @param int|null $now Unix seconds
     */
    public static function verify(
        string $body,
        ?string $header,
        #[\SensitiveParameter] string|array|null $secrets,
        int $tolerance = self::TOLERANCE_S,
        ?int $now = null,
    ): Record {
        [$time, $signatures] = self::readHeader($header);
        $keys = array_filter((array) $secrets, static fn (?string $key): bool => $key !== null && $key !== '');
        if ($keys === []) {
            self::refuse('missing_secret', 'no secret was given to verify the webhook with');
        }
        $age = ($now ?? time()) - $time;
        if ($age > $tolerance) {
            self::refuse('timestamp_too_old', "the webhook was signed {$age} s ago");
        }
        if (-$age > $tolerance) {
            self::refuse('timestamp_in_future', 'the webhook was signed ' . -$age . ' s ahead of this clock');
        }
        foreach ($keys as $key) {
            foreach ($signatures as $given) {
                if (hash_equals(self::signature($body, $key, $time), $given)) {
                    return self::readEvent($body);
                }
            }
        }
        self::refuse('no_match', 'no signature of the webhook matches a secret');
    }

    /** A header for a test of your own receiver. */
    public static function sign(string $body, #[\SensitiveParameter] string $secret, ?int $time = null): string
    {
        $time ??= time();

        return "t={$time},v1=" . self::signature($body, $secret, $time);
    }

    private static function signature(string $body, string $secret, int $time): string
    {
        return hash_hmac('sha256', "{$time}.{$body}", $secret);
    }

    /** @return array{int, list<string>} */
    private static function readHeader(?string $header): array
    {
        if ($header === null || $header === '') {
            self::refuse('missing_header', 'the webhook has no X-Service-Signature');
        }
        if (strlen($header) > self::HEADER_LENGTH_MAX) {
            self::refuse('malformed_header', 'X-Service-Signature is too long');
        }
        $times = [];
        $signatures = [];
        foreach (explode(',', $header) as $part) {
            [$name, $value] = array_pad(explode('=', trim($part), 2), 2, '');
            if ($name === 't') {
                $times[] = $value;
            } elseif ($name === 'v1' && preg_match('/^[0-9a-f]{64}$/D', $value) === 1) {
                $signatures[] = $value;
            }
        }
        if (count($times) !== 1 || preg_match('/^[0-9]{1,12}$/D', $times[0]) !== 1) {
            self::refuse('malformed_header', 'X-Service-Signature has no one time');
        }
        if ($signatures === []) {
            self::refuse('malformed_header', 'X-Service-Signature has no v1 signature');
        }

        return [(int) $times[0], $signatures];
    }

    private static function readEvent(string $body): Record
    {
        $event = json_decode($body);
        if ($event === null) {
            self::refuse('malformed_body', "the webhook's body is not JSON");
        }
        if (!$event instanceof \stdClass || !is_string($event->event ?? null)) {
            self::refuse('malformed_body', "the webhook's body is not an event");
        }

        return new Record($event);
    }

    private static function refuse(string $reason, string $message): never
    {
        throw new WebhookSignatureError($reason, $message);
    }
}
