"""One day with the library against a real Postern: send, wait for the event, verify the webhook, walk over a list, meet each
error. Played by test/clients/stories.long.test.ts; prints one line of JSON."""

import asyncio
import base64
import json
import os
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from postern_mail import AsyncPostern, Postern, PosternError, webhooks  # noqa: E402

NOBODY = "01890000-0000-7000-8000-000000000000"
SECRET = os.environ["STORY_SECRET"]
postern = Postern()
mail = {"from": "orders@shop.example", "to": ["python@recipient.example"], "subject": "A story", "text_body": "Hello"}

after = postern.events.list()["next"]
sent = postern.emails.send(mail)
event = None
while event is None:
    read = postern.events.list(after=after, types="email.delivered", wait=10)
    after = read["next"]
    event = next((one for one in read["events"] if json.loads(one["body"])["email_id"] == sent["id"]), None)
with urllib.request.urlopen(f"{os.environ['STORY_HOOKS']}/{sent['id']}") as answer:
    hook = json.load(answer)
body, header = base64.b64decode(hook["body"]), hook["headers"][webhooks.SIGNATURE_HEADER.lower()]
told = webhooks.verify(body, header, SECRET)
ids = [email["id"] for email in postern.emails.list(limit=2)]


async def count_async():
    async with AsyncPostern() as client:
        return len([email async for email in client.emails.list(limit=2)])


assert asyncio.run(count_async()) >= len(ids)


def kind_of(work):
    try:
        work()
        return "none"
    except PosternError as error:
        return type(error).__name__


def hurry():
    limited = Postern(os.environ["STORY_LIMITED_KEY"], max_retries=0)
    for _ in range(50):
        limited.me.get()


postern.suppressions.add({"email": "gone@recipient.example", "reason": "manual"})
errors = {
    "validation": kind_of(lambda: postern.emails.send({**mail, "to": []})),
    "authentication": kind_of(lambda: Postern("svc_live_wrong").emails.list()),
    "permission": kind_of(lambda: postern.emails.send({**mail, "from": "a@unknown.example"})),
    "not_found": kind_of(lambda: postern.emails.get(NOBODY)),
    "conflict": kind_of(lambda: postern.domains.create({"domain": "shop.example", "type": "outbound"})),
    "all_suppressed": kind_of(lambda: postern.emails.send({**mail, "to": ["gone@recipient.example"]})),
    "rate_limit": kind_of(hurry),
    "connection": kind_of(lambda: Postern(base_url="http://127.0.0.1:1", max_retries=0).emails.list()),
    "signature": kind_of(lambda: webhooks.verify(body + body, header, SECRET)),
}
print(
    json.dumps(
        {
            "id": sent["id"],
            "event": event["event"],
            "webhook": told["email_id"],
            "ids": len(ids),
            "unique": len(set(ids)),
            "errors": errors,
        }
    )
)
