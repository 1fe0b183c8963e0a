"""An application that sends with Django, switched to Postern: the mail that every framework's test sends. Played by
test/clients/frameworks.long.test.ts; prints one line of JSON."""

import base64
import json
import os
import sys
from email.mime.image import MIMEImage
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from django.conf import settings  # noqa: E402

settings.configure(
    EMAIL_BACKEND="postern_mail.django.EmailBackend",
    POSTERN_API_KEY=os.environ.pop("POSTERN_API_KEY"),
    POSTERN_BASE_URL=os.environ.pop("POSTERN_BASE_URL"),
)

from django.core.mail import EmailMessage, EmailMultiAlternatives, get_connection, send_mail  # noqa: E402

message = EmailMultiAlternatives(
    "Grüße aus Łódź",
    "Schöne Grüße\n",
    '"Käse & Co" <orders@shop.example>',
    ['"Anna, Größe" <anna@recipient.example>'],
    cc=["carl@recipient.example"],
    bcc=["bea@recipient.example"],
    reply_to=["help@shop.example"],
    headers={"X-Order": "17", "Message-ID": "<own@shop.example>"},
)
message.attach_alternative('<p>Schöne Grüße <img src="cid:logo@shop.example"></p>', "text/html")
message.attach("Größe.txt", "Maß 17\n", "text/plain")
image = MIMEImage(base64.b64decode(os.environ["PNG"]))
image.add_header("Content-ID", "<logo@shop.example>")
image.add_header("Content-Disposition", "inline", filename="logo.png")
message.attach(image)
message.postern = {"tags": ["receipt"], "metadata": {"order": "17"}}
assert message.send() == 1

try:
    send_mail("s", "t", "a@unknown.example", ["anna@recipient.example"])
    refused = None
except Exception as error:  # noqa: BLE001
    refused = error
assert send_mail("s", "t", "a@unknown.example", ["anna@recipient.example"], fail_silently=True) == 0
try:
    EmailMessage("s", "t", "orders@shop.example", bcc=["a@recipient.example", "b@recipient.example"]).send()
    blind = None
except Exception as error:  # noqa: BLE001
    blind = error
two = [EmailMessage("Two", "t", "orders@shop.example", [f"{name}@recipient.example"]) for name in ("eva", "fritz")]
assert get_connection().send_messages(two) == 2
print(
    json.dumps(
        {
            "message_id": f"<{message.postern_answer['message_id']}>",
            "refused": [type(refused).__name__, getattr(refused, "code", None)],
            "blind": str(blind),
        }
    )
)
