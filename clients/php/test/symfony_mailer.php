<?php

declare(strict_types=1);

// An application that sends with Symfony Mailer, switched to Postern: the mail that every framework's test sends. Played
// by test/clients/frameworks.long.test.ts; prints one line of JSON.

namespace Postern\Test;

use Postern\Symfony\PosternTransportFactory;
use Symfony\Component\Mailer\Envelope;
use Symfony\Component\Mailer\Header\MetadataHeader;
use Symfony\Component\Mailer\Header\TagHeader;
use Symfony\Component\Mailer\Mailer;
use Symfony\Component\Mailer\Transport;
use Symfony\Component\Mime\Address;
use Symfony\Component\Mime\Email;

require '/usr/share/php/Symfony/Component/Mailer/autoload.php';
spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/../src/' . str_replace(['Postern\\', '\\'], ['', '/'], $class) . '.php';
    if (str_starts_with($class, 'Postern\\') && is_file($file)) {
        require $file;
    }
});

$url = parse_url((string) getenv('POSTERN_BASE_URL'));
$dsn = 'postern+http://' . getenv('POSTERN_API_KEY') . "@{$url['host']}:{$url['port']}";
$transport = (new Transport([new PosternTransportFactory()]))->fromString($dsn);
$email = (new Email())
    ->from(new Address('orders@shop.example', 'Käse & Co'))
    ->to(new Address('anna@recipient.example', 'Anna, Größe'))
    ->cc('carl@recipient.example')
    ->bcc('bea@recipient.example')
    ->replyTo('help@shop.example')
    ->subject('Grüße aus Łódź')
    ->text("Schöne Grüße\n")
    ->html('<p>Schöne Grüße <img src="cid:logo.png"></p>')
    ->attach("Maß 17\n", 'Größe.txt', 'text/plain')
    ->embed((string) base64_decode((string) getenv('PNG')), 'logo.png', 'image/png');
$email->getHeaders()->addTextHeader('X-Order', '17');
$email->getHeaders()->add(new TagHeader('receipt'));
$email->getHeaders()->add(new MetadataHeader('order', '17'));
$sent = $transport->send($email);

$plain = static fn (): Email => (new Email())->from('orders@shop.example')->to('anna@recipient.example')
    ->cc('carl@recipient.example')->subject('Envelope')->text('t');
$other = new Envelope(new Address('orders@shop.example'), [new Address('dora@recipient.example')]);
$enveloped = $transport->send($plain(), $other);
(new Mailer($transport))->send($plain()->to('eva@recipient.example')->subject('Two'));

$failure = static function (Email $email) use ($transport): \Throwable {
    try {
        $transport->send($email);
    } catch (\Throwable $error) {
        return $error;
    }

    throw new \LogicException('it was sent');
};
$refused = $failure($plain()->from('a@unknown.example'));
$blind = $failure((new Email())->from('orders@shop.example')->bcc('a@recipient.example', 'b@recipient.example')
    ->subject('s')->text('t'));
echo json_encode([
    'message_id' => "<{$sent->getMessageId()}>",
    'envelope_message_id' => "<{$enveloped->getMessageId()}>",
    'refused' => [(new \ReflectionClass($refused->getPrevious()))->getShortName(), $refused->getPrevious()->errorCode ?? null],
    'blind' => $blind->getMessage(),
], JSON_THROW_ON_ERROR), "\n";
