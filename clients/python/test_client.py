"""Run by the gateway's own tests, which start a gateway: OMP_URL=http://... python3 -m unittest"""

import json
import os
import threading
import unittest
import uuid
import warnings
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Callable, Dict, List, Tuple, Type

import omp_gateway_client as omp

MEMORY = {"id": "mem_1", "content": "tea", "user_id": "u"}


class RealGateway(unittest.TestCase):
    def setUp(self) -> None:
        self.client = omp.MemoryClient(os.environ["OMP_URL"])
        self.user = "user-{}-Łukasz".format(uuid.uuid4())

    def test_verbs(self) -> None:
        added = self.client.add("prefers tea", user_id=self.user, tags=["drinks"], **{"x-mood": "calm"})
        self.assertEqual(added["x-mood"], "calm")
        self.assertEqual(self.client.get(added["id"], user_id=self.user), added)
        again = self.client.add("prefers tea", user_id=self.user, similar=True)
        self.assertEqual([one["id"] for one in again["x-omp-similar"]], [added["id"]])
        self.client.delete(again["id"])
        changed = self.client.update(added["id"], content="prefers coffee")
        self.assertEqual((changed["content"], changed["tags"]), ("prefers coffee", ["drinks"]))
        found = self.client.search("coffee", user_id=self.user, limit=1)
        self.assertEqual([result["memory"]["id"] for result in found], [added["id"]])
        self.assertEqual(len(self.client.context("coffee", user_id=self.user)["citations"]), 1)
        self.client.delete(added["id"])
        with self.assertRaises(omp.NotFound):
            self.client.get(added["id"])
        self.assertIn("delete", [entry["action"] for entry in self.client.audit(user_id=self.user)])

    def test_person_file(self) -> None:
        added = self.client.add("prefers tea", user_id=self.user)
        lines = list(self.client.person_file(self.user))
        self.assertEqual([one["id"] for one in lines if one["type"] == "memory"], [added["id"]])
        self.assertEqual((lines[-1]["type"], lines[-1]["complete"]), ("end", True))
        with self.assertRaises(omp.InvalidRequest):
            next(self.client.person_file(" "))

    def test_undo(self) -> None:
        added = self.client.add("prefers tea", user_id=self.user)
        self.client.update(added["id"], content="prefers mint")
        versions = list(self.client.versions(added["id"], limit=1))
        self.assertEqual([(one["version"], one["current"]) for one in versions], [(2, True), (1, False)])
        self.assertEqual(self.client.get_version(added["id"], 1)["memory"]["content"], "prefers tea")
        self.assertEqual(self.client.restore(added["id"], 1, user_id=self.user)["content"], "prefers tea")
        self.assertEqual(self.client.purge_versions(added["id"]), 2)
        other = self.client.add("prefers tea", user_id="other-" + self.user)
        undone = [(one["id"], one["action"]) for one in self.client.rollback(other["user_id"], other["created_at"])]
        self.assertEqual(undone, [(other["id"], "delete")])

    def test_pages_and_batches(self) -> None:
        memories = [{"content": " " if n == 7 else "fact {}".format(n), "user_id": self.user} for n in range(103)]
        results = self.client.add_many(memories)
        self.assertEqual([n for n, result in enumerate(results) if "error" in result], [7])
        self.assertEqual(results[102]["memory"]["content"], "fact 102")
        large = self.client.add_many([{"content": "a" * 2_000_000, "user_id": "other"}])
        self.assertEqual(large[0]["error"]["code"], "payload_too_large")
        self.assertEqual(len(list(self.client.list(user_id=self.user, limit=40))), 102)
        self.assertEqual(len(self.client.page(user_id=self.user, limit=40)["items"]), 40)

    def test_changes(self) -> None:
        after = self.client.changes(after="now")["next_cursor"]
        added = [self.client.add("fact {}".format(n), user_id=self.user)["id"] for n in range(3)]
        followed = self.client.follow(after, user_id=self.user, limit=2)
        self.assertEqual([next(followed)["id"] for _ in added], added)
        with self.assertRaises(omp.CursorGone):
            self.client.changes(after="0badc0de-1")

    def test_current_and_ignored(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                self.client.add("lives in Lisbon", user_id=self.user, metadata={"own": 1}, valid_to="2001-01-01")
        self.assertEqual(["metadata" in str(one.message) for one in caught], [True])
        now = self.client.add("lives in Porto", user_id=self.user)
        found = self.client.search("lives in", user_id=self.user, current=True)
        self.assertEqual([result["memory"]["id"] for result in found], [now["id"]])

    def test_errors(self) -> None:
        with self.assertRaises(omp.InvalidRequest) as caught:
            self.client.add("", user_id=self.user)
        self.assertEqual((caught.exception.code, caught.exception.status), ("invalid_request", 400))
        self.assertTrue(caught.exception.request_id)


Fault = Callable[[BaseHTTPRequestHandler], None]


def answer(status: int, body: Any, **headers: str) -> Fault:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    return send


def error(status: int, code: str, **headers: str) -> Fault:
    return answer(status, {"error": {"code": code, "message": code, "type": "any"}}, **headers)


def reset(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


BUSY = error(429, "rate_limited", Retry_After="0")
BROKEN = error(502, "provider_error")
FINE = answer(200, MEMORY)


class Faults(unittest.TestCase):
    def serve(self, *faults: Fault) -> Tuple[omp.MemoryClient, List[Dict[str, str]]]:
        asked: List[Dict[str, str]] = []

        class Handler(BaseHTTPRequestHandler):
            def respond(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path == "/capabilities":
                    return answer(200, {"features": {"idempotency": True}})(self)
                asked.append(dict(self.headers))
                return faults[min(len(asked), len(faults)) - 1](self)

            do_GET = do_POST = do_PATCH = do_DELETE = respond

            def log_message(self, *_: Any) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return omp.MemoryClient("http://127.0.0.1:{}".format(server.server_port)), asked

    def test_reads_are_repeated(self) -> None:
        for fault in (BUSY, BROKEN, reset, answer(503, b"{}")):
            client, asked = self.serve(fault, fault, FINE)
            self.assertEqual(client.get("mem_1"), MEMORY)
            self.assertEqual(len(asked), 3)

    def test_changes_are_repeated_only_without_effect(self) -> None:
        for fault, requests in ((BUSY, 3), (BROKEN, 1), (reset, 1)):
            client, asked = self.serve(fault)
            with self.assertRaises(omp.MemoryClientError):
                client.update("mem_1", content="x")
            self.assertEqual(len(asked), requests)
            with self.assertRaises(omp.MemoryClientError):
                client.erase("u")
            self.assertEqual(len(asked), 2 * requests)
            with self.assertRaises(omp.MemoryClientError):
                client.create_key("editor", ["read:*"])
            self.assertEqual(len(asked), 3 * requests)

    def test_a_file_that_was_cut_off(self) -> None:
        for fault in (answer(200, b'{"type":"person"}\n'), answer(200, b'{"type":"person"}\n{"type":"e')):
            client, _ = self.serve(fault)
            lines = client.person_file("u")
            self.assertEqual(next(lines), {"type": "person"})
            with self.assertRaises(omp.ConnectionFailed):
                next(lines)

    def test_adds_are_repeated_with_their_key(self) -> None:
        client, asked = self.serve(reset, BROKEN, FINE)
        self.assertEqual(client.add("tea", user_id="u"), MEMORY)
        keys = [headers["Idempotency-Key"] for headers in asked]
        self.assertEqual(keys, [keys[0]] * 3)

    def test_the_best_results(self) -> None:
        results = [{"memory": MEMORY, "score": score} for score in (0.8, 0.4, 0.39)]
        client, _ = self.serve(answer(200, {"results": results}), answer(200, {"results": []}))
        self.assertEqual(client.search("tea", user_id="u").best(), results[:2])
        self.assertEqual(client.search("tea", user_id="u").best(), [])

    def test_stores_that_an_answer_lacks(self) -> None:
        body = {"results": [{"memory": MEMORY, "score": 0.5}], "x-partial": ["crm"]}
        client, _ = self.serve(answer(200, body, X_Partial="crm", X_Without="old, handbook"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                found = client.search("tea", user_id="u")
        self.assertEqual([found[0]["score"], found.partial, found.without], [0.5, ["crm"], []])
        self.assertEqual(found.best(), found)
        self.assertEqual([name in str(one.message) for name, one in zip(("crm", "old", "handbook"), caught)], [True] * 3)
        self.assertEqual(len(caught), 3)

    def test_a_rollback_says_what_it_lacks(self) -> None:
        item = {"id": "mem_1", "action": "delete"}
        first = {"items": [item], "next_cursor": "c", "deletes_known": False, "x-partial": ["crm"]}
        last: Dict[str, Any] = {"items": [], "next_cursor": None, "deletes_known": False, "x-partial": ["crm"], "x-without": ["old"]}
        client, asked = self.serve(answer(200, first), answer(200, last))
        undone = client.rollback("u", "2026-01-01", key="bad")
        self.assertEqual(list(undone), [item])
        self.assertEqual([undone.partial, undone.without, undone.deletes_known], [["crm"], ["old"], False])
        self.assertEqual(len(asked), 2)

    def test_retention_reads_all_pages(self) -> None:
        page: Dict[str, Any] = {"rules": [], "looked": 1, "items": [], "kept": []}
        client, asked = self.serve(answer(200, {**page, "next_cursor": "c"}), answer(200, {**page, "next_cursor": None}))
        self.assertEqual([one["looked"] for one in client.retention(dry_run=True)], [1, 1])
        self.assertEqual(len(asked), 2)

    def test_one_class_for_each_fault(self) -> None:
        cases: List[Tuple[Fault, Type[omp.MemoryClientError]]] = [
            (error(401, "unauthorized"), omp.Unauthorized),
            (error(403, "scope_denied"), omp.ScopeDenied),
            (error(410, "invalid_request"), omp.CursorGone),
            (error(412, "invalid_request"), omp.PreconditionFailed),
            (error(413, "payload_too_large"), omp.PayloadTooLarge),
            (error(400, "unsupported_capability"), omp.UnsupportedCapability),
            (error(429, "rate_limited", Retry_After="600"), omp.RateLimited),
            (answer(200, b"<html>"), omp.InvalidResponse),
            (answer(503, b"<html>", Retry_After="600"), omp.InvalidResponse),
            (answer(404, {"detail": "no"}), omp.InvalidResponse),
            (answer(302, b"", Location="http://127.0.0.1:9/"), omp.InvalidResponse),
        ]
        for fault, kind in cases:
            client, asked = self.serve(fault)
            with self.assertRaises(kind):
                client.get("mem_1")
            self.assertEqual(len(asked), 1)

    def test_headers(self) -> None:
        client, asked = self.serve(answer(200, MEMORY, X_Consistency_Token="t1"))
        client = omp.MemoryClient(client._url + "/", key=lambda: "k")
        client.get("a")
        client.get("b")
        self.assertEqual([headers.get("X-Consistency-Token") for headers in asked], [None, "t1"])
        self.assertEqual(asked[0]["Authorization"], "Bearer k")

    def test_no_secrets_in_errors(self) -> None:
        client, asked = self.serve(FINE)
        for url, key in ((client._url, "s3\ncret"), ("http://me:s3cret@host", None)):
            with self.assertRaises(ValueError) as caught:
                omp.MemoryClient(url, key).get("mem_1")
            self.assertNotIn("s3", str(caught.exception))
        with self.assertRaises(ValueError):
            client.get("mem_1", user_id=" ana")
        self.assertEqual(asked, [])


if __name__ == "__main__":
    unittest.main()
