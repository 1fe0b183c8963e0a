<?php

declare(strict_types=1);

namespace Postern;

/** An answer that is no success. `errorCode` is stable and for programs, the message is for people. */
class ApiError extends PosternError
{
    public readonly int $status;
    /** Empty where the answer was no error of the API's (a proxy's page, for example). */
    public readonly string $errorCode;
    /** The field at fault, such as `attachments[0].filename`. */
    public readonly ?string $field;
    public readonly ?string $requestId;

    /** @param array<string, mixed>|string $body parsed JSON, or the text where it was no JSON */
    final public function __construct(
        string $message,
        public readonly Response $response,
        public readonly array|string $body,
    ) {
        parent::__construct($message);
        $this->status = $response->status;
        $this->errorCode = $this->text('code') ?? '';
        $this->field = $this->text('field');
        $this->requestId = $response->requestId ?? $this->text('request_id');
    }

    /** The error of its kind. @param array<string, mixed>|string $body */
    public static function of(Response $response, array|string $body): self
    {
        $kind = match (true) {
            $response->status === 400 => ValidationError::class,
            $response->status === 401 => AuthenticationError::class,
            $response->status === 403 => PermissionError::class,
            $response->status === 404 => NotFoundError::class,
            $response->status === 409 => ConflictError::class,
            $response->status === 422 => AllSuppressedError::class,
            $response->status === 429 => RateLimitError::class,
            $response->status >= 500 => ServerError::class,
            default => self::class,
        };

        return new $kind(self::messageOf($response->status, $body), $response, $body);
    }

    protected function value(string $name): mixed
    {
        return is_array($this->body) ? ($this->body[$name] ?? null) : null;
    }

    /** Null where another server than Postern gave it another type. */
    protected function text(string $name): ?string
    {
        return is_string($this->value($name)) ? $this->value($name) : null;
    }

    /** Null where another server than Postern gave it another type. */
    protected function number(string $name): ?int
    {
        return is_int($this->value($name)) ? $this->value($name) : null;
    }

    /** The sentence of an error: that of a 429 stands in `message`, as its `error` is a word for programs. */
    private static function messageOf(int $status, array|string $body): string
    {
        foreach (['message', 'error'] as $name) {
            $said = is_array($body) ? ($body[$name] ?? null) : null;
            if (is_string($said) && $said !== '') {
                return $said;
            }
        }

        return "the server answered {$status}";
    }
}
