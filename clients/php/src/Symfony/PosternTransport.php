<?php

declare(strict_types=1);

namespace Postern\Symfony;

use Postern\Client;
use Postern\PosternError;
use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\Log\LoggerInterface;
use Symfony\Component\Mailer\Envelope;
use Symfony\Component\Mailer\Exception\TransportException;
use Symfony\Component\Mailer\Header\MetadataHeader;
use Symfony\Component\Mailer\Header\TagHeader;
use Symfony\Component\Mailer\SentMessage;
use Symfony\Component\Mailer\Transport\AbstractTransport;
use Symfony\Component\Mime\Address;
use Symfony\Component\Mime\Email;
use Symfony\Component\Mime\Message;
use Symfony\Component\Mime\MessageConverter;
use Symfony\Component\Mime\Part\DataPart;

/**
 * A transport for Symfony Mailer, and so for Laravel. TagHeader and MetadataHeader become tags and metadata.
 * A failure is a TransportException whose previous exception is Postern's. Not here: RawMessage, which goes to SMTP
 * submission.
 */
final class PosternTransport extends AbstractTransport
{
    /** Postern writes these itself, or they have a field of their own. */
    private const OWN = '/^(date|message-id|mime-version|content-.*|from|to|cc|bcc|reply-to|subject)$/i';

    public function __construct(
        private readonly Client $client,
        ?EventDispatcherInterface $dispatcher = null,
        ?LoggerInterface $logger = null,
    ) {
        parent::__construct($dispatcher, $logger);
    }

    public function __toString(): string
    {
        return 'postern';
    }

    protected function doSend(SentMessage $message): void
    {
        $original = $message->getOriginalMessage();
        if (!$original instanceof Message) {
            throw new TransportException("Postern's API takes no raw message; send it by SMTP submission");
        }
        try {
            $request = self::requestOf(MessageConverter::toEmail($original), $message->getEnvelope());
            $answer = $this->client->emails->send($request);
        } catch (PosternError $error) {
            throw new TransportException($error->getMessage(), 0, $error);
        }
        // Postern's name of the message is the one that events bring.
        $message->setMessageId($answer['message_id']);
        $message->appendDebug("{$answer['status']} {$answer['id']}\n");
    }

    /**
     * The body of POST /v1/send.
     *
     * @return array<string, mixed>
     */
    private static function requestOf(Email $email, Envelope $envelope): array
    {
        return array_filter([
            'from' => self::text($email->getFrom()[0] ?? $envelope->getSender()),
            ...self::recipients($email, $envelope),
            'reply_to' => array_map(self::text(...), $email->getReplyTo()),
            'subject' => $email->getSubject() ?? '',
            'html_body' => self::body($email->getHtmlBody()),
            'text_body' => self::body($email->getTextBody()),
            'attachments' => array_map(self::attachment(...), $email->getAttachments()),
            ...self::headers($email),
        ], static fn (mixed $value): bool => $value !== null && $value !== []);
    }

    /**
     * Who gets it is the envelope's word; the header fields say how they are shown.
     *
     * @return array{to: string[], cc: string[], bcc: string[]}
     */
    private static function recipients(Email $email, Envelope $envelope): array
    {
        $wanted = [];
        foreach ($envelope->getRecipients() as $address) {
            $wanted[strtolower($address->getAddress())] = $address->getAddress();
        }
        $take = static function (array $addresses) use (&$wanted): array {
            $taken = [];
            foreach ($addresses as $address) {
                $key = strtolower($address->getAddress());
                if (isset($wanted[$key])) {
                    $taken[] = self::text($address);
                    unset($wanted[$key]);
                }
            }

            return $taken;
        };
        [$to, $cc, $bcc] = [$take($email->getTo()), $take($email->getCc()), $take($email->getBcc())];
        $bcc = [...$bcc, ...array_values($wanted)];
        if ($to === []) {
            [$to, $cc] = [$cc, []];
        }
        if ($to === [] && \count($bcc) === 1) {
            [$to, $bcc] = [$bcc, []];
        }
        if ($to === []) {
            throw new PosternError("Postern needs a recipient in 'to'; send one mail to each who must not see the others");
        }

        return ['to' => $to, 'cc' => $cc, 'bcc' => $bcc];
    }

    private static function text(Address $address): string
    {
        $name = $address->getName();

        return $name === '' ? $address->getAddress() : '"' . addcslashes($name, '"\\') . '" <' . $address->getAddress() . '>';
    }

    /** @param resource|string|null $body */
    private static function body(mixed $body): ?string
    {
        return \is_resource($body) ? (string) stream_get_contents($body, -1, 0) : $body;
    }

    /** @return array<string, string> */
    private static function attachment(DataPart $part): array
    {
        $headers = $part->getPreparedHeaders();
        $name = $headers->getHeaderParameter('Content-Disposition', 'filename') ?? 'attachment';
        $isInline = $headers->getHeaderBody('Content-Disposition') === 'inline';
        $found = [
            'filename' => $name,
            'content' => base64_encode($part->getBody()),
            'content_type' => $part->getMediaType() . '/' . $part->getMediaSubtype(),
            'disposition' => $isInline ? 'inline' : 'attachment',
        ];
        if (!$isInline) {
            return $found;
        }

        // embed() names a picture; the HTML links to it by that name.
        return $found + ['content_id' => $part->hasContentId() ? $part->getContentId() : $name];
    }

    /** @return array{headers: array<string, string>, tags: string[], metadata: array<string, string>} */
    private static function headers(Email $email): array
    {
        $found = ['headers' => [], 'tags' => [], 'metadata' => []];
        foreach ($email->getHeaders()->all() as $header) {
            if ($header instanceof TagHeader) {
                $found['tags'][] = $header->getValue();
            } elseif ($header instanceof MetadataHeader) {
                $found['metadata'][$header->getKey()] = $header->getValue();
            } elseif (preg_match(self::OWN, $header->getName()) !== 1) {
                $body = $header->getBody();
                $found['headers'][$header->getName()] = \is_string($body) ? $body : $header->getBodyAsString();
            }
        }

        return $found;
    }
}
