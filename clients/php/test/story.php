<?php

declare(strict_types=1);

// One day with the library against a real Postern: send, wait for the event, verify the webhook, walk over a list, meet
// each error. Played by test/clients/stories.long.test.ts; prints one line of JSON.

namespace Postern\Test;

use Postern\Client;
use Postern\PosternError;
use Postern\Webhooks;

spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/../src/' . str_replace(['Postern\\', '\\'], ['', '/'], $class) . '.php';
    if (str_starts_with($class, 'Postern\\') && is_file($file)) {
        require $file;
    }
});

const NOBODY = '01890000-0000-7000-8000-000000000000';
$secret = (string) getenv('STORY_SECRET');
$postern = new Client();
$mail = ['from' => 'orders@shop.example', 'to' => ['php@recipient.example'], 'subject' => 'A story', 'text_body' => 'Hello'];

$after = $postern->events->list()->next;
$sent = $postern->emails->send($mail);
$event = null;
while ($event === null) {
    $read = $postern->events->list(['after' => $after, 'types' => 'email.delivered', 'wait' => 10]);
    $after = $read->next;
    foreach ($read->events as $one) {
        if (json_decode($one->body, false, 64, JSON_THROW_ON_ERROR)->email_id === $sent->id) {
            $event = $one;
        }
    }
}
$hook = json_decode((string) file_get_contents(getenv('STORY_HOOKS') . "/{$sent->id}"), true, 16, JSON_THROW_ON_ERROR);
$body = (string) base64_decode($hook['body']);
$header = $hook['headers']['x-service-signature'];
$told = Webhooks::verify($body, $header, $secret);
$ids = [];
foreach ($postern->emails->list(['limit' => 2]) as $email) {
    $ids[] = $email->id;
}

$kindOf = static function (callable $work): string {
    try {
        $work();

        return 'none';
    } catch (PosternError $error) {
        return (new \ReflectionClass($error))->getShortName();
    }
};
$hurry = static function (): void {
    $limited = new Client((string) getenv('STORY_LIMITED_KEY'), ['max_retries' => 0]);
    for ($asked = 0; $asked < 50; $asked++) {
        $limited->me->get();
    }
};
$postern->suppressions->add(['email' => 'gone@recipient.example', 'reason' => 'manual']);
$nowhere = new Client(null, ['base_url' => 'http://127.0.0.1:1', 'max_retries' => 0]);
$errors = [
    'validation' => $kindOf(static fn () => $postern->emails->send(['to' => []] + $mail)),
    'authentication' => $kindOf(static fn () => (new Client('svc_live_wrong'))->emails->list()->total),
    'permission' => $kindOf(static fn () => $postern->emails->send(['from' => 'a@unknown.example'] + $mail)),
    'not_found' => $kindOf(static fn () => $postern->emails->get(NOBODY)),
    'conflict' => $kindOf(static fn () => $postern->domains->create(['domain' => 'shop.example', 'type' => 'outbound'])),
    'all_suppressed' => $kindOf(static fn () => $postern->emails->send(['to' => ['gone@recipient.example']] + $mail)),
    'rate_limit' => $kindOf($hurry),
    'connection' => $kindOf(static fn () => $nowhere->emails->get(NOBODY)),
    'signature' => $kindOf(static fn () => Webhooks::verify($body . $body, $header, $secret)),
];
echo json_encode([
    'id' => $sent->id, 'event' => $event->event, 'webhook' => $told->email_id,
    'ids' => \count($ids), 'unique' => \count(array_unique($ids)), 'errors' => $errors,
], JSON_THROW_ON_ERROR), "\n";
