"""Nothing is written outside the target, whoever named the files: listings, READMEs, links."""

from __future__ import annotations

import contextlib
import http.server
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets import export_dataset, load_dataset
from graphnet_datasets.errors import DatasetNotFoundError, GraphNetError, UnsafePathError
from graphnet_datasets.paths import check_name, folder_name, place_inside
from tests.hub_server import Blob, Hub, Repository
from tests.tables import write_dataset

ESCAPES = (
    "../outside-0.parquet",
    "cv/../../outside-0.parquet",
    "cv/../../../../outside-0.parquet",
    "%2e%2e/outside-0.parquet",
    "cv/..%2f..%2foutside-0.parquet",
    "cv\\..\\..\\outside-0.parquet",
)
EVERYTHING = """---
configs:
- config_name: cv
  data_files:
  - split: train
    path: ['*/*.parquet', '**/*.parquet', '*/*/*/*.parquet', '*/*/*/*/*/*.parquet']
---
"""
README = "---\nconfigs:\n- config_name: cv\n  data_files: '{}'\n---\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "source")


def outside(folder: Path) -> set[str]:
    """Return what lies in the folder beside the source and the target."""
    return {each.name for each in folder.iterdir()} - {"source", "target"}


@contextlib.contextmanager
def serving(pages: dict[str, bytes], rest: bytes) -> Iterator[str]:
    """Serve pages by path on loopback, and under every other name of a table `rest`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = pages.get(self.path.rstrip("/"))
            if body is None and self.path.endswith(".parquet"):
                body = rest
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the tests' output quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "name", [*ESCAPES, "/etc/outside-0.parquet", "http://other/cv/x-0.parquet"]
)
def test_a_listing_over_http_names_another_place(name: str, root: Path, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install aiohttp")
    table = (root / "cv" / "train-0000.parquet").read_bytes()
    listing = "".join(f'<a href="{each}">x</a>' for each in ("cv/", "cv/train-0000.parquet", name))
    pages = {
        "/graphs": listing.encode(),
        "/graphs/README.md": EVERYTHING.encode(),
        "/graphs/cv": f'<a href="train-0000.parquet">x</a><a href="{name}">x</a>'.encode(),
        "/graphs/cv/train-0000.parquet": table,
    }
    with serving(pages, table) as address, contextlib.suppress(GraphNetError):
        export_dataset(tmp_path / "target", f"{address}/graphs")
    assert outside(tmp_path) == set()
    # Some names the client of HTTP itself leaves out; then the rest is there.
    found = {each.name for each in (tmp_path / "target").rglob("*") if each.is_file()}
    assert found in (set(), {"README.md", "train-0000.parquet"})


def in_memory(files: dict[str, bytes]) -> str:
    """Put objects under their names, as an object store does, which knows no directories."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    for name, content in files.items():
        with system.open("/plain", "wb") as file:
            file.write(content)
        system.store[f"/there/{name}"] = system.store.pop("/plain")
    return "memory://there"


@pytest.mark.parametrize("name", ESCAPES)
def test_an_object_store_holds_a_name_that_leads_outside(
    name: str, root: Path, tmp_path: Path
) -> None:
    table = (root / "cv" / "train-0000.parquet").read_bytes()
    url = in_memory({"README.md": EVERYTHING.encode(), name: table})
    with pytest.raises(GraphNetError):
        export_dataset(tmp_path / "target", url)
    assert outside(tmp_path) == set()


@pytest.mark.parametrize("name", ESCAPES[:3])
def test_a_bucket_of_s3_holds_a_key_that_leads_outside(
    name: str, root: Path, tmp_path: Path, bucket: dict[str, Any]
) -> None:
    system = fsspec.filesystem("s3", **bucket)
    system.pipe_file("graphs/there/README.md", EVERYTHING.encode())
    table = (root / "cv" / "train-0000.parquet").read_bytes()
    system.call_s3("put_object", Bucket="graphs", Key=f"there/{name}", Body=table)
    with pytest.raises(GraphNetError):
        export_dataset(tmp_path / "target", "s3://graphs/there", storage_options=bucket)
    assert outside(tmp_path) == set()


@pytest.mark.parametrize("name", [*ESCAPES[:3], "/tmp/outside-0.parquet"])  # noqa: S108
def test_a_repository_lists_a_name_that_leads_outside(
    name: str, root: Path, tmp_path: Path, hub: Hub
) -> None:
    repository = Repository()
    table = (root / "cv" / "train-0000.parquet").read_bytes()
    commit = repository.add({name: Blob(table, is_lfs=True)})
    repository.branches = {"main": commit, "v1": commit}
    hub.state.repositories["org/graphs"] = repository
    with pytest.raises(UnsafePathError, match=r"^`org/graphs` contains the name"):
        export_dataset(tmp_path / "target", "org/graphs")
    assert outside(tmp_path) == set()


@pytest.mark.parametrize(
    "pattern",
    ["../source-2/*.parquet", "/etc/*", "cv/../../*", "~/x", "http://other/*", "cv\\\\..\\\\*"],
)
def test_the_readme_of_a_directory_or_a_url_names_a_pattern_outside(
    pattern: str, root: Path, tmp_path: Path
) -> None:
    text = README.format(pattern)
    (root / "README.md").write_text(text)
    url = in_memory(
        {"README.md": text.encode(), "cv/a-0.parquet": (root / "cv/test-0000.parquet").read_bytes()}
    )
    for place in (root, url):
        with pytest.raises(GraphNetError):
            export_dataset(tmp_path / "target", place)
        with pytest.raises(GraphNetError):
            load_dataset(place, "cv", split=None)
    assert outside(tmp_path) == set()


def test_a_file_at_the_end_of_a_url_that_is_two_dots(tmp_path: Path) -> None:
    with pytest.raises((UnsafePathError, DatasetNotFoundError)):
        export_dataset(tmp_path / "target", "memory://there/..")


def test_links_in_the_target_are_not_followed_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "target").mkdir()
    for link, aim in (("absolute", tmp_path / "elsewhere"), ("relative", Path("../elsewhere"))):
        (tmp_path / "target" / link).symlink_to(aim)
        with pytest.raises(UnsafePathError, match=re.escape(f"`{tmp_path / 'elsewhere'}/a'"[:-3])):
            place_inside(tmp_path / "target", f"{link}/a", "a row")
    (tmp_path / "target" / "inner").mkdir()
    (tmp_path / "target" / "link").symlink_to("inner")
    assert place_inside(tmp_path / "target", "link/a", "a row").name == "a"


NAMES = st.text(st.sampled_from("ab.%2eEfF/\\:~\0 \n*"), max_size=12)


@given(NAMES)
def test_accepted_names_are_below_the_directory(name: str) -> None:
    with contextlib.suppress(UnsafePathError):
        check_name(name, "a listing")
        place = place_inside(Path("/data/target"), name, "a listing")
        assert place.is_relative_to("/data/target")
        assert place != Path("/data/target")
        assert ".." not in place.parts


IDS = st.text(st.sampled_from("ab.+=@-/é"), min_size=1, max_size=8).map(
    lambda text: "/".join(part * 90 for part in text.split("/") if part) or "a"
)


@given(IDS, IDS)
def test_folder_names_fit_every_file_system_and_stay_apart(first: str, second: str) -> None:
    names: list[Callable[[], str]] = [lambda: folder_name(first), lambda: folder_name(second)]
    one, two = (make() for make in names)
    assert all(len(part.encode()) <= 200 for part in one.split("/"))
    assert (one == two) == (first == second)
