"""A clone of a Git repository on this machine: a branch with one commit, or nothing at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import PushError, UnsafePathError
from ..terminal import printable_line


class Clone:
    """The work tree of a Git repository.

    Raises:
        PushError: Git is not installed, or there is no work tree at the path.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if shutil.which("git") is None:
            raise PushError("`git` is not installed. Install it, or push to the Hub instead.")
        place = Path(path)
        if not place.is_dir():
            raise PushError(f"There is no directory `{path}`. Clone the repository first.")
        self.root = place
        try:
            self.root = Path(self.git("rev-parse", "--show-toplevel"))
            git_directory = Path(self.git("rev-parse", "--absolute-git-dir"))
        except PushError as error:
            raise PushError(
                f"`{path}` is no clone of a Git repository. Clone the repository of the dataset, "
                "and name the clone."
            ) from error
        if not (_belongs(git_directory, self.root) and place.resolve().is_relative_to(self.root)):
            raise UnsafePathError(
                f"`{self.root / '.git'}` leads to the Git directory `{git_directory}`, which does "
                f"not name `{self.root}` as its work tree. A commit would go elsewhere: clone the "
                "repository anew with `git clone`, and name the clone."
            )

    def git(self, *arguments: str) -> str:
        """Return what a Git command prints.

        Raises:
            PushError: it failed; the message is Git's.
        """
        environment = os.environ | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        done = subprocess.run(  # noqa: S603 - Git's own arguments, no shell
            ["git", "-C", str(self.root), *arguments],  # noqa: S607 - the user's Git
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip() or "it says nothing").splitlines()
            raise PushError(
                f"`git {arguments[0]}` failed in `{self.root}`: {printable_line(said[-1])}"
            )
        return done.stdout.strip()

    def check_index(self) -> None:
        """Check that nothing is staged that would go into the commit too.

        Raises:
            PushError: something is.
        """
        staged = self.git("diff", "--cached", "--name-only").splitlines()
        if staged:
            raise PushError(
                f"`{printable_line(staged[0])}` is staged in `{self.root}`. Commit what is staged, "
                "or take it back (`git restore --staged .`), and submit again."
            )

    @contextlib.contextmanager
    def branch(self, name: str) -> Iterator[None]:
        """Be on a new branch; where the block raises the branch is gone, and the old one is back.

        Raises:
            PushError: there is a branch of that name already, or Git refuses it.
        """
        head = self.git("rev-parse", "--verify", "--quiet", "HEAD")
        before = self.git("rev-parse", "--abbrev-ref", "HEAD")
        self.git("switch", "--quiet", "--create", name)
        try:
            yield
        except BaseException:
            if before == "HEAD":
                self.git("switch", "--quiet", "--detach", head)
            else:
                self.git("symbolic-ref", "HEAD", f"refs/heads/{before}")
            self.git("branch", "--quiet", "-D", name)
            raise

    def commit(self, paths: Sequence[Path], message: str) -> str:
        """Commit some files and return the name of the commit.

        Raises:
            PushError: Git refuses it; then nothing is staged.
        """
        names = [str(path.relative_to(self.root)) for path in paths]
        try:
            self.git("add", "--", *names)
            self.git("commit", "--quiet", "--message", message, "--", *names)
        except PushError:
            self.git("reset", "--quiet", "--", *names)
            raise
        return self.git("rev-parse", "HEAD")


def _belongs(git_directory: Path, root: Path) -> bool:
    """Return whether a Git directory is that of a clone, or of a work tree that Git registered."""
    dot_git = root / ".git"
    if dot_git.is_symlink():
        return False
    if dot_git.is_dir():
        return git_directory == dot_git
    try:
        if not dot_git.is_file():
            return False
        registered = git_directory / (git_directory / "gitdir").read_text().strip()
        return os.path.normpath(registered) == str(dot_git)
    except (OSError, ValueError):
        return False
