"""Client of the Open Memory Protocol: one file, standard library only, Python 3.9 and later.

    client = MemoryClient("http://localhost:8080", key="...")
    client.add("prefers pnpm", user_id="u1")
    for result in client.search("package manager", user_id="u1"):
        print(result["score"], result["memory"]["content"])

Memories are dictionaries with the fields of the protocol. Times are ISO 8601 texts in UTC.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import random
import re
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Type, Union

__all__ = [
    "MemoryClient",
    "MemoryClientError",
    "ConnectionFailed",
    "InvalidResponse",
    "ApiError",
    "Unauthorized",
    "ScopeDenied",
    "NotFound",
    "InvalidRequest",
    "PreconditionFailed",
    "CursorGone",
    "RateLimited",
    "UnsupportedCapability",
    "ProviderFailed",
    "PayloadTooLarge",
    "Results",
    "version",
]
__version__ = "0.1.0"

Memory = Dict[str, Any]
Users = Union[str, Sequence[str]]

_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 8.0
_BATCH = 100
_BATCH_BYTES = 1_000_000
_MAX_WARNINGS = 100
_WARNINGS = {
    "X-Ignored-Fields": "the gateway ignores {!r}; data of your own goes into keys of a memory that begin with x-",
    "X-Partial": "answers lack the store {!r}, which does not answer",
    "X-Without": "answers lack the store {!r}, which does not support what was asked for",
}


class MemoryClientError(Exception):
    """Base of everything that this client raises."""


class ConnectionFailed(MemoryClientError):
    """No answer arrived: the network failed, or the gateway was silent for `timeout` seconds."""


class InvalidResponse(MemoryClientError):
    """The answer is not the protocol's, for example the page of a proxy."""

    def __init__(self, message: str, status: int, headers: Mapping[str, str]) -> None:
        super().__init__("the answer (status {}) is not {}".format(status, message))
        self.status = status
        #: For the gateway's logs.
        self.request_id = headers.get("X-Request-Id")
        #: Seconds until a retry may succeed.
        self.retry_after = _seconds(headers.get("Retry-After"))


class ApiError(MemoryClientError):
    """The gateway answered with an error. There is a subclass for each code."""

    def __init__(
        self,
        message: str,
        code: str,
        status: int,
        request_id: Optional[str],
        retry_after: Optional[float],
        provider: Optional[str],
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        #: For the gateway's logs.
        self.request_id = request_id
        #: Seconds until a retry may succeed.
        self.retry_after = retry_after
        #: The backend at fault.
        self.provider = provider


class Unauthorized(ApiError):
    pass


class ScopeDenied(ApiError):
    pass


class NotFound(ApiError):
    pass


class InvalidRequest(ApiError):
    pass


class PreconditionFailed(InvalidRequest):
    """The memory has changed since the version that `if_match` names: read it again."""


class CursorGone(InvalidRequest):
    """The gateway does not know the changes after this cursor any more: copy the memories again, and follow from "now"."""


class RateLimited(ApiError):
    pass


class UnsupportedCapability(ApiError):
    pass


class ProviderFailed(ApiError):
    pass


class PayloadTooLarge(ApiError):
    pass


_CLASSES: Mapping[str, Type[ApiError]] = {
    "unauthorized": Unauthorized,
    "scope_denied": ScopeDenied,
    "not_found": NotFound,
    "invalid_request": InvalidRequest,
    "rate_limited": RateLimited,
    "unsupported_capability": UnsupportedCapability,
    "provider_error": ProviderFailed,
    "payload_too_large": PayloadTooLarge,
}


def version(memory: Memory) -> str:
    """The value of `if_match` for this version of a memory, also if it comes from a list or a search."""
    return '"{}"'.format(memory["updated_at"])


class Results(List[Dict[str, Any]]):
    """The results of a search. Of a gateway with several stores:

    partial: names of optional stores that are missing, because they do not answer.
    without: names of stores that cannot search.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(answer["results"])
        self.partial: Sequence[str] = answer.get("x-partial", [])
        self.without: Sequence[str] = answer.get("x-without", [])

    def best(self) -> List[Dict[str, Any]]:
        """Without those that are far below the best: with less than half of its score."""
        return [result for result in self if result["score"] >= self[0]["score"] / 2]


class Rollback(Iterator[Dict[str, Any]]):
    """What a rollback does, memory by memory. Of the pages that were read so far:

    partial: names of optional stores that are missing, because they do not answer: repeat the rollback.
    without: names of stores that cannot roll back.
    deletes_known: False: the gateway has no audit log, so nothing says what was deleted.
    """

    def __init__(self, send: Callable[[Dict[str, Any]], Dict[str, Any]]) -> None:
        self.partial: List[str] = []
        self.without: List[str] = []
        self.deletes_known = True
        self._items = self._pages(send)

    def __next__(self) -> Dict[str, Any]:
        return next(self._items)

    def _pages(self, send: Callable[[Dict[str, Any]], Dict[str, Any]]) -> Iterator[Dict[str, Any]]:
        more: Dict[str, Any] = {}
        while True:
            page = send(more)
            for names, field in ((self.partial, "x-partial"), (self.without, "x-without")):
                names.extend(name for name in page.get(field, []) if name not in names)
            self.deletes_known = page.get("deletes_known", True)
            yield from page["items"]
            if page.get("next_cursor") is None:
                return
            more = {"cursor": page["next_cursor"]}


class MemoryClient:
    """A client of one gateway. It may be used by several threads.

    url: address of the gateway; a path prefix is kept.
    key: API key or token, or a function that is asked before each attempt.
    timeout: seconds that the gateway may be silent.
    total_timeout: seconds after which nothing is retried any more.
    retries: retries after the first attempt.
    """

    def __init__(
        self,
        url: str,
        key: Union[str, Callable[[], str], None] = None,
        *,
        timeout: float = 30.0,
        total_timeout: float = 60.0,
        retries: int = 2,
        headers: Optional[Mapping[str, str]] = None,
    ) -> None:
        self._url = url.rstrip("/")
        if "@" in urllib.parse.urlsplit(self._url).netloc:
            raise ValueError("url: must not contain credentials; use key")
        self._key = key
        self._timeout = timeout
        self._total_timeout = total_timeout
        self._retries = retries
        self._headers = dict(headers or {})
        self._consistency: Optional[str] = None
        self._known: Optional[Dict[str, Any]] = None
        self._warned: Set[str] = set()

    def add(
        self,
        content: str,
        *,
        user_id: str,
        idempotency_key: Optional[str] = None,
        **fields: Any,
    ) -> Memory:
        """Adds a memory. `fields`: scope, tags, source, confidence, valid_from, valid_to, supersedes. similar=True: the answer
        has other memories that say nearly the same as `x-omp-similar`.

        `x-` keys: `**{"x-mood": "calm"}`. Raises InvalidRequest, ScopeDenied, PayloadTooLarge.
        """
        query = {"similar": fields.pop("similar", None)}
        memory = {"content": content, "user_id": user_id, **fields}
        return self._add("/memories", memory, idempotency_key, query)

    def add_many(self, memories: Sequence[Memory], *, idempotency_key: Optional[str] = None) -> List[Dict[str, Any]]:
        """Adds any number of memories, in as many batches as the gateway's limits need.

        Returns `{"memory": ...}` or `{"error": ...}` for each, in order. If a batch fails as a whole, this raises, and
        the memories of the batches before it are added.
        """
        known = self._capabilities() or {}
        if not known.get("features", {}).get("batch"):
            return self._add_each(memories, idempotency_key)
        results: List[Dict[str, Any]] = []
        size = known.get("limits", {}).get("max_batch_size") or _BATCH
        for index, batch in enumerate(_split(memories, size)):
            # One that may be too large on its own: then that is its result.
            if len(batch) == 1:
                results.extend(self._add_each(batch, _numbered(idempotency_key, index)))
                continue
            answer = self._add("/memories/batch", {"memories": batch}, _numbered(idempotency_key, index))
            results.extend(answer["results"])
        return results

    def get(self, id: str, *, user_id: Optional[str] = None) -> Memory:
        """Reads a memory; with `user_id`, that of another user counts as absent. Raises NotFound."""
        return self._send("GET", _path(id), headers=_by_id(user_id), repeatable=True)

    def update(
        self, id: str, *, user_id: Optional[str] = None, if_match: Optional[str] = None, **fields: Any
    ) -> Memory:
        """Changes only the given fields: content, scope, tags, confidence, valid_to, supersedes, x- keys.

        `if_match`: only this version, `version(memory)`. Raises NotFound, PreconditionFailed.
        """
        return self._send("PATCH", _path(id), body=fields, headers=_by_id(user_id, if_match))

    def delete(self, id: str, *, user_id: Optional[str] = None, if_match: Optional[str] = None) -> None:
        """Deletes a memory permanently. Raises NotFound, PreconditionFailed."""
        self._send("DELETE", _path(id), headers=_by_id(user_id, if_match))

    def versions(self, id: str, *, user_id: Optional[str] = None, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The versions of a memory, newest first: `version`, `memory`, `changed`, `current`. Raises NotFound.

        `filters`: limit (of a page).
        """
        return self._pages(_path(id) + "/versions", filters, "items", _by_id(user_id))

    def get_version(self, id: str, version: int, *, user_id: Optional[str] = None) -> Dict[str, Any]:
        """One version of a memory. Raises NotFound."""
        return self._send("GET", "{}/versions/{}".format(_path(id), version), headers=_by_id(user_id), repeatable=True)

    def restore(
        self, id: str, version: int, *, user_id: Optional[str] = None, if_match: Optional[str] = None
    ) -> Memory:
        """Gives the memory what it had in this version, as a new version. Raises NotFound, PreconditionFailed."""
        body = {"version": version}
        return self._send("POST", _path(id) + "/restore", body=body, headers=_by_id(user_id, if_match))

    def purge_versions(self, id: str, *, user_id: Optional[str] = None) -> int:
        """Deletes the versions before the current one permanently. Returns how many. Raises NotFound."""
        purged: int = self._send("DELETE", _path(id) + "/versions", headers=_by_id(user_id))["purged"]
        return purged

    def list(self, *, user_id: str, **filters: Any) -> Iterator[Memory]:
        """All memories of a user, newest first.

        `filters`: scope (a glob), tag, since, until, limit (of a page). current=True leaves out what is not valid now, or
        superseded by another memory of its page. origin="key:NAME" or "via:mcp" leaves out what others wrote last; untrusted=False
        what untrusted keys wrote, and with untrusted=True that supersedes too.
        """
        return self._pages("/memories", {"user_id": user_id, **filters}, "items")

    def page(self, *, user_id: str, **filters: Any) -> Dict[str, Any]:
        """One page of `list`: `items` and `next_cursor`, which is `cursor` of the next page."""
        return self._send("GET", "/memories", query={"user_id": user_id, **filters}, repeatable=True)

    def search(self, q: str, *, user_id: Users, **options: Any) -> "Results":
        """Results `{"memory", "score"}`, best first. `options`: scope (a prefix), tag, limit, min_score, explain,
        current, distinct, since, until, origin and untrusted (as in `list`).

        current=True leaves out what is not valid now, or superseded by another of the 100 best hits. Otherwise a result has the
        ids of the results that supersede it as `x-superseded-by`. distinct=True gives one result for each text, the newest memory
        with it among these hits, and the ids of the others as `x-copies`.
        """
        query = {"q": q, "user_id": user_id, **options}
        return Results(self._send("GET", "/memories/search", query=query, repeatable=True))

    def context(self, query: str, *, user_id: Users, **options: Any) -> Dict[str, Any]:
        """`text` for a prompt, `citations`, `token_count`. `options`: scope, token_budget, min_score, since, until, origin.

        half_life_days=30 prefers what was said lately: scores times 0.75 after these days, and never less than 0.5. `now` is the
        time for which the context is made: what is valid then, and how old it is.

        untrusted=True includes what untrusted keys wrote, marked with `[untrusted]`. explain=True says why each citation is there.
        """
        ids = user_id if isinstance(user_id, str) else list(user_id)
        return self._send("POST", "/context", body={"query": query, "user_id": ids, **options}, repeatable=True)

    def audit(self, *, user_id: str, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The audit log of a user, newest first. `filters`: app, since, until, limit (of a page)."""
        return self._pages("/audit", {"user_id": user_id, **filters}, "entries")

    def changes(self, **query: Any) -> Dict[str, Any]:
        """One page of the changes that the key may read, oldest first. Raises CursorGone.

        query: after (a cursor, or "now"), user_id, scope (a glob), limit, include ("memory"), wait (seconds, less than `timeout`).
        """
        return self._send("GET", "/changes", query=query, repeatable=True)

    def follow(self, after: Optional[str] = None, **query: Any) -> Iterator[Dict[str, Any]]:
        """Change after change, and then the next ones as they happen. `query`: as in `changes`.

        Keep `cursor` of the last change that was dealt with: it is `after` of the next time.
        """
        query = {"wait": 20, **query}
        while True:
            page = self.changes(after=after, **query)
            yield from page["changes"]
            after = page["next_cursor"]

    def users(self, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The users whose memories the key may read, with counts. `filters`: limit (of a page)."""
        return self._pages("/users", filters, "items")

    def stats(self, user_id: str) -> Dict[str, Any]:
        """Counts of a user's memories by scope and tag."""
        return self._send("GET", "/stats", query={"user_id": user_id}, repeatable=True)

    def erase(self, user_id: str) -> int:
        """Deletes all memories of a user permanently. Returns how many."""
        deleted: int = self.erase_with_receipt(user_id)["deleted"]
        return deleted

    def erase_with_receipt(self, user_id: str) -> Dict[str, Any]:
        """Does what `erase` does. Returns {"deleted", "receipt"}: what was removed of each store, what was left, and what is kept and why."""
        path = "/users/{}/memories".format(urllib.parse.quote(user_id, safe=""))
        answer: Dict[str, Any] = self._send("DELETE", path)
        return answer

    def person_file(self, user_id: str) -> Iterator[Dict[str, Any]]:
        """All that is stored of a user, line by line; the last one says whether it is complete. Raises ConnectionFailed if it
        was cut off.

        `type` of a line: person, memory, version, audit, missing, not_kept, end.
        """
        url = "{}/users/{}/file".format(self._url, urllib.parse.quote(user_id, safe=""))

        def opened() -> Any:
            response = self._open("GET", url, None, {})
            if response.status >= 300:
                with response:
                    _read(response.status, response.headers, self._connected(response.read))
            return response

        whole = False
        with self._retried(opened, True) as response:
            while True:
                line: bytes = self._connected(response.readline)
                if not line.endswith(b"\n"):
                    break
                fields = json.loads(line)
                yield fields
                whole = fields["type"] == "end"
        if not whole:
            raise ConnectionFailed("the file was cut off: its last line is missing")

    def rollback(self, user_id: str, since: str, **fields: Any) -> "Rollback":
        """Undoes what was written to the memories of a user since a time; each page that is read undoes what it names.

        `fields`: until, key (the name of a key, or "" for callers without one), limit (of a page), dry_run=True only says what
        would be done. Yields `{"id", "action", "reason", "version", "memory"}`.
        """
        path = "/users/{}/rollback".format(urllib.parse.quote(user_id, safe=""))
        body = {"since": since, **fields}
        return Rollback(lambda more: self._send("POST", path, body={**body, **more}, repeatable=True))

    def retention(self, dry_run: bool = False) -> Iterator[Dict[str, Any]]:
        """Deletes what the retention rules of the gateway say; dry_run=True only says what would be deleted.

        Yields pages `{"rules", "looked", "items", "failed", "kept"}`; each page that is read deletes what it counts. The counts of all pages add
        up. Needs a key that reads and deletes everything.
        """
        more: Dict[str, Any] = {}
        while True:
            page: Dict[str, Any] = self._send("POST", "/retention", body={"dry_run": dry_run, **more}, repeatable=True)
            yield page
            if page.get("next_cursor") is None:
                return
            more = {"cursor": page["next_cursor"]}

    def keys(self, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The keys of the gateway, newest first. Needs a key with the grant admin:*. `filters`: limit (of a page)."""
        return self._pages("/keys", filters, "items")

    def create_key(self, name: str, grants: Sequence[str], **fields: Any) -> Dict[str, Any]:
        """Makes a key; its `key` is the key itself, in no other answer. `fields`: users, expires_at, untrusted."""
        return self._send("POST", "/keys", body={"name": name, "grants": [*grants], **fields})

    def revoke_key(self, id: str) -> Dict[str, Any]:
        """Revokes a key other than the caller's. Raises NotFound."""
        return self._send("DELETE", "/keys/" + urllib.parse.quote(id, safe=""))

    def webhooks(self) -> List[Dict[str, Any]]:
        """The webhooks of the gateway, oldest first. Needs a key with the grant admin:*, as the following methods do."""
        items: List[Dict[str, Any]] = self._send("GET", "/webhooks", repeatable=True)["items"]
        return items

    def create_webhook(self, url: str, **fields: Any) -> Dict[str, Any]:
        """Sends each change from now on to a URL. Its `secret` is in no other answer. `fields`: users, scope, actions."""
        return self._send("POST", "/webhooks", body={"url": url, **fields})

    def delete_webhook(self, id: str) -> None:
        """Deletes a webhook. Raises NotFound."""
        self._send("DELETE", self._webhook(id))

    def test_webhook(self, id: str) -> Dict[str, Any]:
        """Sends one event. Returns how that ended. Raises NotFound."""
        return self._send("POST", self._webhook(id) + "/test")

    def resume_webhook(self, id: str, **filters: Any) -> Dict[str, Any]:
        """Delivers again after the deliveries have stopped. `filters`: from ("cursor" or "now"). Raises NotFound."""
        return self._send("POST", self._webhook(id) + "/resume", query=filters)

    def rotate_webhook(self, id: str) -> Dict[str, Any]:
        """Makes a new `secret`; the one before signs too for 24 hours. Raises NotFound."""
        return self._send("POST", self._webhook(id) + "/rotate")

    @staticmethod
    def _webhook(id: str) -> str:
        return "/webhooks/" + urllib.parse.quote(id, safe="")

    def embedding_usage(self, *, until: Optional[str] = None, **filters: Any) -> Iterator[Dict[str, Any]]:
        """What the embedding service was used for, by day and caller. Needs a key with the grant admin:*. `until`: last day, UTC; default: today.
        `filters`: since (the first day).
        """
        # All pages are of the same days, also after midnight.
        until = until or time.strftime("%Y-%m-%d", time.gmtime())
        return self._pages("/embedding-usage", {**filters, "until": until}, "items")

    def frozen(self) -> Dict[str, Any]:
        """Since when the store takes no changes, and who froze it. Needs a key with the grant admin:*."""
        return self._send("GET", "/freeze", repeatable=True)

    def freeze(self) -> Dict[str, Any]:
        """Stops all changes of memories on every gateway of this store."""
        return self._send("POST", "/freeze", repeatable=True)

    def unfreeze(self) -> Dict[str, Any]:
        """Allows them again. Returns the freeze that ended."""
        return self._send("DELETE", "/freeze", repeatable=True)

    def capabilities(self) -> Dict[str, Any]:
        """Verbs, features and limits of the gateway."""
        return self._send("GET", "/capabilities", repeatable=True)

    def health(self) -> Dict[str, Any]:
        """Whether the gateway runs and its backend answers."""
        return self._send("GET", "/healthz", repeatable=True)

    def _capabilities(self) -> Optional[Dict[str, Any]]:
        if self._known is None:
            try:
                self._known = self.capabilities()
            except MemoryClientError:
                return None
        return self._known

    def _add(
        self, path: str, body: Dict[str, Any], key: Optional[str], query: Optional[Mapping[str, Any]] = None
    ) -> Dict[str, Any]:
        known = self._capabilities() or {}
        # With a key the request can be repeated.
        repeatable = known.get("features", {}).get("idempotency") is True
        if key is None and repeatable:
            key = secrets.token_urlsafe(16)
        headers = {} if key is None else {"Idempotency-Key": key}
        return self._send("POST", path, query=query, body=body, headers=headers, repeatable=repeatable)

    def _add_each(self, memories: Sequence[Memory], key: Optional[str]) -> List[Dict[str, Any]]:
        results: List[Dict[str, Any]] = []
        for index, memory in enumerate(memories):
            try:
                results.append({"memory": self._add("/memories", memory, _numbered(key, index))})
            except (InvalidRequest, ScopeDenied, PayloadTooLarge) as error:
                results.append({"error": {"code": error.code, "message": str(error)}})
        return results

    def _pages(
        self, path: str, query: Mapping[str, Any], field: str, headers: Optional[Mapping[str, str]] = None
    ) -> Iterator[Dict[str, Any]]:
        query = dict(query)
        while True:
            page = self._send("GET", path, query=query, headers=headers, repeatable=True)
            yield from page[field]
            if page.get("next_cursor") is None:
                return
            query["cursor"] = page["next_cursor"]

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        repeatable: bool = False,
    ) -> Dict[str, Any]:
        """`repeatable`: the request may be sent again although it may have had an effect."""
        url = self._url + path + _encode(query or {})
        data = None if body is None else json.dumps(body).encode()
        answer: Dict[str, Any] = self._retried(lambda: self._attempt(method, url, data, headers or {}), repeatable)
        return answer

    def _retried(self, attempt: Callable[[], Any], repeatable: bool) -> Any:
        end = time.monotonic() + self._total_timeout
        failures = 0
        while True:
            try:
                return attempt()
            except (ApiError, ConnectionFailed, InvalidResponse) as error:
                pause = random.random() * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**failures)
                pause += getattr(error, "retry_after", None) or 0.0
                if failures >= self._retries or not _may_retry(error, repeatable) or time.monotonic() + pause >= end:
                    raise
                failures += 1
                time.sleep(pause)

    def _attempt(self, method: str, url: str, data: Optional[bytes], headers: Mapping[str, str]) -> Dict[str, Any]:
        with self._open(method, url, data, headers) as response:
            status, answer, text = response.status, response.headers, self._connected(response.read)
        self._consistency = answer.get("X-Consistency-Token", self._consistency)
        result = _read(status, answer, text)
        self._warn(answer)
        return result

    def _open(self, method: str, url: str, data: Optional[bytes], headers: Mapping[str, str]) -> Any:
        """The answer, also of an error, with its body yet to be read."""
        key = self._key() if callable(self._key) else self._key
        sent = {**self._headers, **headers}
        if key is not None:
            # The error of `http.client` would show the key.
            if not re.fullmatch("[!-~]+", key.strip()):
                raise ValueError("key: must be visible ASCII characters")
            sent["Authorization"] = "Bearer " + key.strip()
        if data is not None:
            sent["Content-Type"] = "application/json"
        if self._consistency is not None:
            sent["X-Consistency-Token"] = self._consistency
        request = urllib.request.Request(url, data=data, headers=sent, method=method)

        def send() -> Any:
            try:
                return _OPENER.open(request, timeout=self._timeout)
            except urllib.error.HTTPError as error:
                return error

        return self._connected(send)

    def _connected(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailed("the request to {} failed: {}".format(self._url, error)) from error

    def _warn(self, headers: Mapping[str, str]) -> None:
        """Warns once for each field that the gateway ignores, and for each store that an answer lacks."""
        for header, text in _WARNINGS.items():
            for name in headers.get(header, "").split(", "):
                warning = text.format(name)
                if warning in self._warned or len(self._warned) == _MAX_WARNINGS:
                    continue
                if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
                    self._warned.add(warning)
                    warnings.warn(warning, stacklevel=2)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could send the key to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _read(status: int, headers: Mapping[str, str], text: bytes) -> Dict[str, Any]:
    try:
        body = json.loads(text) if text else {}
    except ValueError:
        raise InvalidResponse("JSON", status, headers) from None
    if 200 <= status < 300 and isinstance(body, dict):
        return body
    error = body.get("error") if isinstance(body, dict) else None
    kind = _CLASSES.get(error.get("code", "")) if isinstance(error, dict) else None
    if not isinstance(error, dict) or kind is None:
        raise InvalidResponse("the protocol's", status, headers)
    kind = {410: CursorGone, 412: PreconditionFailed}.get(status, kind)
    code = error["code"]
    raise kind(
        str(error.get("message", code)),
        code,
        status,
        headers.get("X-Request-Id"),
        _seconds(headers.get("Retry-After")),
        error.get("provider"),
    )


def _may_retry(error: MemoryClientError, repeatable: bool) -> bool:
    """What was rejected as too frequent had no effect. Anything else may have had one."""
    status = getattr(error, "status", None)
    if status == 429:
        return True
    return repeatable and (status is None or status >= 500 or status == 408)


def _seconds(header: Optional[str]) -> Optional[float]:
    """`Retry-After` as seconds: a number or a date."""
    if header is None:
        return None
    if header.isdigit():
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _path(id: str) -> str:
    return "/memories/" + urllib.parse.quote(id, safe="")


def _by_id(user_id: Optional[str], if_match: Optional[str] = None) -> Dict[str, str]:
    headers = {}
    if user_id is not None:
        if user_id != user_id.strip():
            raise ValueError("user_id: a header must not begin or end with a space")
        # `http.client` sends Latin-1; the gateway reads the bytes as UTF-8.
        headers["X-User-Id"] = user_id.encode().decode("latin-1")
    if if_match is not None:
        headers["If-Match"] = if_match
    return headers


def _encode(query: Mapping[str, Any]) -> str:
    """A list repeats its parameter; None is left out."""
    pairs: List[Tuple[str, str]] = []
    for name, value in query.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                pairs.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
    return "?" + urllib.parse.urlencode(pairs) if pairs else ""


def _numbered(key: Optional[str], index: int) -> Optional[str]:
    """A key of the caller covers several requests."""
    return None if key is None else "{}-{}".format(key, index)


def _split(memories: Sequence[Memory], size: int) -> Iterator[List[Memory]]:
    """In batches of at most `size` memories and, unless a single one is larger, `_BATCH_BYTES`."""
    batch: List[Memory] = []
    total = 0
    for memory in memories:
        length = len(json.dumps(memory)) + 2
        if batch and (len(batch) == size or total + length > _BATCH_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(memory)
        total += length
    if batch:
        yield batch
