"""Reads messages (base64, one in each line of stdin) with CPython's email package and prints what it sees as JSON.

The oracle of src/mail/mime/build-message.test.ts; policy.default is the strict modern parser.
"""

import base64
import json
import sys
from email import message_from_bytes, policy


def leaf(part):
    content = part.get_payload(decode=True) if part.get_content_type() != "message/rfc822" else None
    if content is None:
        content = part.get_payload(0).as_bytes(policy=policy.SMTP)
    is_text = part.get_content_maintype() == "text"
    return {
        "type": part.get_content_type(),
        "text": content.decode(part.get_content_charset("us-ascii"), "surrogateescape") if is_text else None,
        "content": base64.b64encode(content).decode(),
        "filename": part.get_filename(),
        "disposition": part.get_content_disposition(),
        "content_id": part["Content-ID"],
    }


def tree(part):
    if not part.is_multipart() or part.get_content_type() == "message/rfc822":
        return part.get_content_type()
    return [part.get_content_type(), *[tree(child) for child in part.iter_parts()]]


def leaves(part):
    if not part.is_multipart() or part.get_content_type() == "message/rfc822":
        return [leaf(part)]
    return [found for child in part.iter_parts() for found in leaves(child)]


def defects(message):
    found = []
    for part in message.walk():
        found += [type(defect).__name__ for defect in part.defects]
        for name, value in part.items():
            found += [f"{name}: {type(defect).__name__}" for defect in getattr(value, "defects", [])]
    return found


def mailboxes(value):
    return [[box.display_name, box.addr_spec] for box in value.addresses] if value is not None else []


for line in sys.stdin:
    message = message_from_bytes(base64.b64decode(line), policy=policy.default)
    print(
        json.dumps(
            {
                "headers": [[name, str(value)] for name, value in message.items()],
                "subject": message["Subject"],
                "date": message["Date"].datetime.timestamp() if message["Date"] else None,
                "from": mailboxes(message["From"]),
                "to": mailboxes(message["To"]),
                "cc": mailboxes(message["Cc"]),
                "reply_to": mailboxes(message["Reply-To"]),
                "tree": tree(message),
                "leaves": leaves(message),
                "defects": defects(message),
            }
        )
    )
