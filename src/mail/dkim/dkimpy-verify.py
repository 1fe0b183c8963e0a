# Verifies DKIM signatures with dkimpy for sign.test.ts. Lines of JSON in: {"message": base64, "txt": {name: value}};
# lines of JSON out: one list of results (true, false or the error's text) a message, one result a signature.
import base64
import json
import sys

import dkim

for line in sys.stdin:
    case = json.loads(line)
    message = base64.b64decode(case["message"])
    txt = case["txt"]
    count = message.split(b"\r\n\r\n", 1)[0].lower().count(b"dkim-signature:")
    results = []
    for index in range(count):
        try:
            verifier = dkim.DKIM(message)
            results.append(verifier.verify(idx=index, dnsfunc=lambda name, timeout=5: txt.get(name.decode().rstrip("."), "").encode()))
        except dkim.DKIMException as error:
            results.append(str(error))
    print(json.dumps(results), flush=True)
