"""Stands for the official library, which is on PyPI only: checks what the Standard Webhooks specification describes."""

import base64
import hashlib
import hmac
import json
import time

TOLERANCE = 300


class WebhookVerificationError(Exception):
    pass


class Webhook:
    def __init__(self, secret):
        self._key = base64.b64decode(secret.removeprefix("whsec_"))

    def verify(self, body, headers):
        given = {name.lower(): value for name, value in headers.items()}
        try:
            id, timestamp, signatures = (given["webhook-" + name] for name in ("id", "timestamp", "signature"))
            is_recent = abs(time.time() - int(timestamp)) <= TOLERANCE
        except (KeyError, ValueError) as error:
            raise WebhookVerificationError("headers are missing or malformed") from error
        digest = hmac.new(self._key, b"%s.%s.%s" % (id.encode(), timestamp.encode(), body), hashlib.sha256).digest()
        expected = "v1," + base64.b64encode(digest).decode()
        if not is_recent or not any(hmac.compare_digest(expected, one) for one in signatures.split(" ")):
            raise WebhookVerificationError("no signature matches")
        return json.loads(body)
