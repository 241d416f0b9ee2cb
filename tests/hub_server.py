"""A small Hub for the tests: it speaks the protocol of the real clients over loopback.

It serves datasets only: create, preupload, git-LFS batch and PUT, NDJSON commit with 409 and 412,
pull requests, branches, tags, refs, info, tree, paths-info and resolve with ranges. Blobs that
went through LFS are served under another host name than the API, as on the real Hub: clients read
`X-Repo-Commit` from the first answer only where the host changes.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_test"  # noqa: S105 - the token that the tests hand to their own server
LFS_SUFFIXES = (".parquet", ".png")


@dataclasses.dataclass(frozen=True)
class Blob:
    """A file's content as the repository holds it."""

    content: bytes
    is_lfs: bool

    @property
    def oid(self) -> str:
        head = f"blob {len(self.content)}\0".encode()
        return hashlib.sha1(head + self.content, usedforsecurity=False).hexdigest()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.is_lfs else self.oid


@dataclasses.dataclass
class Repository:
    """Commits, branches and tags of one dataset."""

    commits: dict[str, dict[str, Blob]] = dataclasses.field(default_factory=dict)
    branches: dict[str, str] = dataclasses.field(default_factory=dict)
    tags: dict[str, str] = dataclasses.field(default_factory=dict)
    pulls: dict[str, str] = dataclasses.field(default_factory=dict)
    history: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.branches["main"] = self.add({})

    def add(self, files: dict[str, Blob]) -> str:
        text = f"{len(self.commits)}:" + ",".join(f"{k}={v.oid}" for k, v in sorted(files.items()))
        commit = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        self.commits[commit] = files
        self.history.append(commit)
        return commit

    def resolve(self, revision: str) -> str | None:
        for names in (self.branches, self.tags, self.pulls):
            if revision in names:
                return names[revision]
        return revision if revision in self.commits else None


@dataclasses.dataclass
class HubState:
    """What the server holds, and what it has been asked for."""

    repositories: dict[str, Repository] = dataclasses.field(default_factory=dict)
    uploads: dict[str, bytes] = dataclasses.field(default_factory=dict)
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    bytes_served: dict[str, int] = dataclasses.field(default_factory=dict)
    commit_failures: list[int] = dataclasses.field(default_factory=list)
    """HTTP statuses to answer the next commits with, to see how a writer recovers."""
    put_failures: list[int] = dataclasses.field(default_factory=list)


class Refusal(Exception):  # noqa: N818 - an HTTP answer rather than an error of the program
    """An answer with an error status."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Handler(BaseHTTPRequestHandler):
    """Routes of the Hub."""

    protocol_version = "HTTP/1.1"
    state: HubState
    api_url: str
    blob_url: str

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the tests' output quiet."""

    def do_GET(self) -> None:
        self._serve("GET")

    def do_HEAD(self) -> None:
        self._serve("HEAD")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_PUT(self) -> None:
        self._serve("PUT")

    def _serve(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        chunked = "chunked" in (self.headers.get("Transfer-Encoding") or "")
        body = self._read_chunks() if chunked else self.rfile.read(length)
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        path = unquote(parts.path)
        try:
            for verbs, pattern, route in ROUTES:
                match = re.fullmatch(pattern, path)
                if match and method in verbs:
                    route(self, body=body, query=query, **match.groupdict())
                    return
            raise Refusal(404, f"no route for {method} {path}", "EntryNotFound")
        except Refusal as refusal:
            headers = {"X-Error-Code": refusal.code, "X-Error-Message": str(refusal)}
            self._send(refusal.status, {"error": str(refusal)}, headers)

    def _read_chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _send(self, status: int, content: Any = b"", headers: dict[str, str] | None = None) -> None:
        payload = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for key, value in (headers or {}).items():
            if value:
                self.send_header(key, value)
        if "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(payload)))
        if not isinstance(content, bytes):
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)

    def _repository(self, name: str) -> Repository:
        repository = self.state.repositories.get(name)
        if repository is None:
            raise Refusal(404, f"Repository {name} not found", "RepoNotFound")
        return repository

    def _files(self, name: str, revision: str) -> tuple[str, dict[str, Blob]]:
        repository = self._repository(name)
        commit = repository.resolve(revision)
        if commit is None:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit, repository.commits[commit]

    def _authorize(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refusal(401, "Invalid username or password.")

    # -- account and repositories

    def whoami(self, **_: Any) -> None:
        self._authorize()
        self._send(
            200, {"type": "user", "name": "tester", "orgs": [], "auth": {"type": "access_token"}}
        )

    def create(self, body: bytes, **_: Any) -> None:
        self._authorize()
        asked = json.loads(body)
        name = f"{asked.get('organization') or 'tester'}/{asked['name']}"
        with self.state.lock:
            is_new = name not in self.state.repositories
            if is_new:
                self.state.repositories[name] = Repository()
        answer = {"url": f"{self.api_url}/datasets/{name}", "name": name}
        if not is_new:
            answer["error"] = "You already created this dataset repo"
        self._send(200 if is_new else 409, answer)

    def information(self, name: str, rev: str | None = None, **_: Any) -> None:
        commit, files = self._files(name, rev or "main")
        self._send(
            200,
            {
                "_id": name,
                "id": name,
                "sha": commit,
                "private": False,
                "disabled": False,
                "gated": False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "lastModified": "2026-01-01T00:00:00.000Z",
                "createdAt": "2026-01-01T00:00:00.000Z",
                "siblings": [{"rfilename": path} for path in sorted(files)],
            },
        )

    def refs(self, name: str, **_: Any) -> None:
        repository = self._repository(name)

        def listed(names: dict[str, str], prefix: str) -> list[dict[str, str]]:
            return [
                {"name": key, "ref": f"{prefix}{key}", "targetCommit": commit}
                for key, commit in names.items()
            ]

        self._send(
            200,
            {
                "branches": listed(repository.branches, "refs/heads/"),
                "converts": [],
                "tags": listed(repository.tags, "refs/tags/"),
                "pullRequests": listed(repository.pulls, ""),
            },
        )

    def branch(self, name: str, rev: str, body: bytes, **_: Any) -> None:
        self._authorize()
        repository = self._repository(name)
        start = json.loads(body or b"{}").get("startingPoint", "main")
        with self.state.lock:
            if rev in repository.branches:
                raise Refusal(409, f"Reference refs/heads/{rev} already exists")
            repository.branches[rev] = self._files(name, start)[0]
        self._send(200, {})

    def tag(self, name: str, rev: str, body: bytes, **_: Any) -> None:
        self._authorize()
        repository = self._repository(name)
        tag = json.loads(body)["tag"]
        if tag in repository.tags:
            raise Refusal(409, f"Tag {tag} already exists")
        repository.tags[tag] = self._files(name, rev)[0]
        self._send(200, {})

    # -- listing

    def tree(
        self, name: str, rev: str, query: dict[str, str], folder: str | None = None, **_: Any
    ) -> None:
        commit, files = self._files(name, rev)
        prefix = f"{folder.strip('/')}/" if folder and folder.strip("/") else ""
        is_recursive = query.get("recursive", "false").lower() in ("true", "1")
        entries: dict[str, dict[str, Any]] = {}
        for path, blob in files.items():
            if not path.startswith(prefix):
                continue
            parts = path[len(prefix) :].split("/")
            for depth in range(1, len(parts)):
                if depth == 1 or is_recursive:
                    directory = prefix + "/".join(parts[:depth])
                    entries[directory] = {
                        "type": "directory",
                        "path": directory,
                        "oid": commit,
                        "size": 0,
                    }
            if len(parts) == 1 or is_recursive:
                entries[path] = entry_of(path, blob)
        if prefix and not entries:
            raise Refusal(404, f"{folder} does not exist on {rev}", "EntryNotFound")
        self._send(200, [entries[path] for path in sorted(entries)])

    def paths_information(self, name: str, rev: str, body: bytes, **_: Any) -> None:
        commit, files = self._files(name, rev)
        is_json = "json" in (self.headers.get("Content-Type") or "")
        asked = json.loads(body)["paths"] if is_json else parse_qs(body.decode()).get("paths", [])
        found = []
        for path in [asked] if isinstance(asked, str) else asked:
            if path in files:
                found.append(entry_of(path, files[path]))
            elif any(each.startswith(f"{path}/") for each in files):
                found.append({"type": "directory", "path": path, "oid": commit, "size": 0})
        self._send(200, found)

    # -- reading

    def resolve(self, name: str, rev: str, path: str, **_: Any) -> None:
        commit, files = self._files(name, rev)
        if path not in files:
            raise Refusal(404, f"{path} does not exist on {rev}", "EntryNotFound")
        blob = files[path]
        headers = {"X-Repo-Commit": commit, "ETag": f'"{blob.oid}"', "Accept-Ranges": "bytes"}
        if blob.is_lfs:
            location = f"{self.blob_url}/blobs/{blob.sha256}"
            headers |= {
                "Location": location,
                "X-Linked-ETag": f'"{blob.sha256}"',
                "X-Linked-Size": str(len(blob.content)),
            }
            self.state.uploads.setdefault(blob.sha256, blob.content)
            self._send(302, b"", headers)
            return
        self._send_content(path, blob.content, headers)

    def blob(self, sha: str, **_: Any) -> None:
        content = self.state.uploads.get(sha)
        if content is None:
            raise Refusal(404, "no such object")
        self._send_content(sha, content, {"ETag": f'"{sha}"', "Accept-Ranges": "bytes"})

    def _send_content(self, key: str, content: bytes, headers: dict[str, str]) -> None:
        status = 200
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if asked:
            first, last = asked.groups()
            start = int(first) if first else max(0, len(content) - int(last))
            stop = int(last) + 1 if last and first else len(content)
            total, content, status = len(content), content[start:stop], 206
            headers["Content-Range"] = f"bytes {start}-{start + len(content) - 1}/{total}"
        headers["Content-Length"] = str(len(content))
        if self.command == "GET":
            with self.state.lock:
                served = self.state.bytes_served
                served[key] = served.get(key, 0) + len(content)
        self._send(status, content, headers)

    # -- writing

    def validate_yaml(self, **_: Any) -> None:
        self._send(200, {"errors": [], "warnings": []})

    def preupload(self, name: str, rev: str, body: bytes, **_: Any) -> None:
        self._authorize()
        _, files = self._files(name, rev)
        answer = []
        for each in json.loads(body)["files"]:
            path = each["path"]
            mode = "lfs" if path.endswith(LFS_SUFFIXES) else "regular"
            oid = files[path].etag if path in files else None
            answer.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self._send(200, {"files": answer})

    def lfs_batch(self, body: bytes, **_: Any) -> None:
        self._authorize()
        objects = []
        for each in json.loads(body)["objects"]:
            answer: dict[str, Any] = {"oid": each["oid"], "size": each["size"]}
            if each["oid"] not in self.state.uploads:
                href = f"{self.blob_url}/blobs/{each['oid']}"
                answer["actions"] = {"upload": {"href": href, "header": {}}}
            objects.append(answer)
        self._send(200, {"transfer": "basic", "objects": objects})

    def put_blob(self, sha: str, body: bytes, **_: Any) -> None:
        with self.state.lock:
            if self.state.put_failures:
                raise Refusal(self.state.put_failures.pop(0), "the store is not to be reached")
        if hashlib.sha256(body).hexdigest() != sha:
            raise Refusal(400, "the content does not have the announced hash")
        self.state.uploads[sha] = body
        self._send(200)

    def commit(self, name: str, rev: str, body: bytes, query: dict[str, str], **_: Any) -> None:
        self._authorize()
        with self.state.lock:
            if self.state.commit_failures:
                raise Refusal(self.state.commit_failures.pop(0), "A commit has happened since.")
            repository = self._repository(name)
            head, files = self._files(name, rev)
            changed = dict(files)
            for line in body.splitlines():
                item = json.loads(line)
                value = item["value"]
                if item["key"] == "header":
                    parent = value.get("parentCommit")
                    if parent and parent != head and not query.get("create_pr"):
                        raise Refusal(
                            412, "A commit has happened since. Please refresh and try again."
                        )
                elif item["key"] == "file":
                    changed[value["path"]] = Blob(base64.b64decode(value["content"]), is_lfs=False)
                elif item["key"] == "lfsFile":
                    content = self.state.uploads.get(value["oid"])
                    if content is None:
                        raise Refusal(400, "the object was not uploaded")
                    changed[value["path"]] = Blob(content, is_lfs=True)
                elif item["key"] == "deletedFile":
                    changed.pop(value["path"], None)
            oid = repository.add(changed)
            answer = {
                "success": True,
                "commitOid": oid,
                "commitUrl": f"{self.api_url}/datasets/{name}/commit/{oid}",
            }
            if query.get("create_pr"):
                number = len(repository.pulls) + 1
                repository.pulls[f"refs/pr/{number}"] = oid
                answer["pullRequestUrl"] = f"{self.api_url}/datasets/{name}/discussions/{number}"
            elif rev in repository.branches:
                repository.branches[rev] = oid
            else:
                raise Refusal(404, f"Invalid rev id: {rev}", "RevisionNotFound")
        self._send(200, answer)


def entry_of(path: str, blob: Blob) -> dict[str, Any]:
    """Return what the tree and paths-info routes say of a file."""
    entry: dict[str, Any] = {
        "type": "file",
        "path": path,
        "oid": blob.oid,
        "size": len(blob.content),
    }
    if blob.is_lfs:
        entry["lfs"] = {"oid": blob.sha256, "size": len(blob.content), "pointerSize": 134}
    return entry


REPO = r"/api/datasets/(?P<name>[^/]+/[^/]+)"
REV = r"(?P<rev>refs/pr/\d+|[^/]+)"
ROUTES: list[tuple[tuple[str, ...], str, Callable[..., None]]] = [
    (("GET",), r"/api/whoami-v2", Handler.whoami),
    (("POST",), r"/api/repos/create", Handler.create),
    (("POST",), r"/api/validate-yaml", Handler.validate_yaml),
    (("GET",), REPO, Handler.information),
    (("GET",), rf"{REPO}/revision/{REV}", Handler.information),
    (("GET",), rf"{REPO}/refs", Handler.refs),
    (("POST",), rf"{REPO}/branch/{REV}", Handler.branch),
    (("POST",), rf"{REPO}/tag/{REV}", Handler.tag),
    (("GET",), rf"{REPO}/tree/{REV}(?P<folder>/.*)?", Handler.tree),
    (("POST",), rf"{REPO}/paths-info/{REV}", Handler.paths_information),
    (("POST",), rf"{REPO}/preupload/{REV}", Handler.preupload),
    (("POST",), rf"{REPO}/commit/{REV}", Handler.commit),
    (("POST",), r"/datasets/[^/]+/[^/]+\.git/info/lfs/objects/batch", Handler.lfs_batch),
    (("PUT",), r"/blobs/(?P<sha>[0-9a-f]{64})", Handler.put_blob),
    (("GET", "HEAD"), r"/blobs/(?P<sha>[0-9a-f]{64})", Handler.blob),
    (
        ("GET", "HEAD"),
        rf"/datasets/(?P<name>[^/]+/[^/]+)/resolve/{REV}/(?P<path>.+)",
        Handler.resolve,
    ),
]


@dataclasses.dataclass(frozen=True)
class Hub:
    """A running server."""

    endpoint: str
    state: HubState


@contextlib.contextmanager
def running_hub() -> Iterator[Hub]:
    """Serve an empty Hub on a free port of loopback until the block ends."""
    state = HubState()
    handler = type("BoundHandler", (Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    port = server.server_address[1]
    handler.api_url = f"http://127.0.0.1:{port}"  # type: ignore[attr-defined]
    handler.blob_url = f"http://localhost:{port}"  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Hub(f"http://127.0.0.1:{port}", state)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
