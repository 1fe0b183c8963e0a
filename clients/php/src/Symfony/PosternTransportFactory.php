<?php

declare(strict_types=1);

namespace Postern\Symfony;

use Postern\Client;
use Symfony\Component\Mailer\Exception\UnsupportedSchemeException;
use Symfony\Component\Mailer\Transport\AbstractTransportFactory;
use Symfony\Component\Mailer\Transport\Dsn;
use Symfony\Component\Mailer\Transport\TransportInterface;

/**
 * Makes `MAILER_DSN=postern://KEY@mail.example.eu` work: register it as a service with the tag
 * `mailer.transport_factory`. A port and `?path=/prefix` are kept; `postern+http` is for a Postern without TLS on the
 * same machine; `postern://default` takes POSTERN_API_KEY and POSTERN_BASE_URL.
 */
final class PosternTransportFactory extends AbstractTransportFactory
{
    public function create(Dsn $dsn): TransportInterface
    {
        if (!\in_array($dsn->getScheme(), $this->getSupportedSchemes(), true)) {
            throw new UnsupportedSchemeException($dsn, 'postern', $this->getSupportedSchemes());
        }
        $client = $dsn->getHost() === 'default'
            ? new Client($dsn->getUser())
            : new Client($this->getUser($dsn), ['base_url' => self::baseUrl($dsn)]);

        return new PosternTransport($client, $this->dispatcher, $this->logger);
    }

    /** @return string[] */
    protected function getSupportedSchemes(): array
    {
        return ['postern', 'postern+http'];
    }

    private static function baseUrl(Dsn $dsn): string
    {
        $scheme = $dsn->getScheme() === 'postern+http' ? 'http' : 'https';
        $port = $dsn->getPort() === null ? '' : ':' . $dsn->getPort();

        return "{$scheme}://{$dsn->getHost()}{$port}" . (string) $dsn->getOption('path', '');
    }
}
