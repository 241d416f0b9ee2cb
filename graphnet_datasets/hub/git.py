"""Commits in a local clone of a Git repository, on a new branch, undone on any error."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..decoding import read_text
from ..errors import PushError, UnsafePathError
from ..isolation.confinement import without_secrets
from ..terminal import printable_line

_WITHOUT_PROGRAMS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""Options that disable hooks and file system monitors, which an untrusted repository may define."""

_ELSEWHERE = frozenset(
    {
        "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE",
    }
)  # fmt: skip
"""Variables that make Git use another repository. Git sets them in its hooks."""

_OF_COMMITS = ("GIT_", "SSH_AUTH_SOCK", "XAUTHORITY")
"""Beginnings of names that look like secrets, but name authors or let agents sign commits."""

_HARMLESS = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode"
    r"|symlinks|autocrlf|eol|safecrlf|sparsecheckout|sparsecheckoutcone|untrackedcache|splitindex"
    r"|commitgraph|multipackindex|compression|quotepath|longpaths|protecthfs|protectntfs)"
    r"|index\.\w+|extensions\.(objectformat|worktreeconfig|partialclone|refstorage|noop)"
    r"|remote\.[^\n]*\.(url|pushurl|fetch|push|tagopt|prune|mirror|promisor|partialclonefilter"
    r"|skipdefaultupdate|skipfetchall|gh-resolved)"
    r"|branch\.[^\n]*\.(remote|merge|rebase|pushremote|description|vscode-merge-base)"
    r"|submodule\.([^\n]*\.)?(url|active|branch|recurse)"
    r"|user\.(name|email|useconfigonly|signingkey)|author\.\w+|committer\.\w+"
    r"|(commit|tag|push)\.(gpgsign|forcesignannotated|autosetupremote|default|followtags)"
    r"|(pull|fetch|gc|pack|merge|rebase|rerere|init|advice|status|color|log|feature)"
    r"\.(?!.*(tool|driver|program|command|cmd|hook))[\w.-]+"
    r"|lfs\.(repositoryformatversion|[^\n]*\.(access|locksverify))",
    re.IGNORECASE,
)
"""Settings that neither name a program nor lead to files outside of the repository."""

_LFS = {
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
}
"""Settings of `git lfs install --local`."""


class Clone:
    """The work tree of a Git repository.

    Hooks of the repository never run, and a repository whose own configuration names programs is
    refused, since its Git directory may come from an untrusted archive.

    Raises:
        PushError: Git is not installed, or the path is not a work tree.
        UnsafePathError: the Git directory is elsewhere, or its configuration names a program.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if shutil.which("git") is None:
            raise PushError("`git` is not installed. Install it, or push to the Hub instead.")
        directory = Path(path)
        if not directory.is_dir():
            raise PushError(f"There is no directory `{path}`. Clone the repository first.")
        self.root = directory
        try:
            self.root = Path(self.git("rev-parse", "--show-toplevel"))
            git_directory = Path(self.git("rev-parse", "--absolute-git-dir"))
        except PushError as error:
            raise PushError(
                f"`{path}` is not a clone of a Git repository. Clone the repository of the "
                "dataset, and pass its path."
            ) from error
        self._check_configuration(git_directory)
        if not (
            _belongs(git_directory, self.root) and directory.resolve().is_relative_to(self.root)
        ):
            raise UnsafePathError(
                f"`{self.root / '.git'}` refers to the Git directory `{git_directory}`, whose work "
                f"tree is not `{self.root}`. A commit would go elsewhere: clone the repository "
                "again with `git clone`, and pass the path of the clone."
            )

    def git(self, *arguments: str) -> str:
        """Return the output of a Git command.

        Raises:
            PushError: the command failed; the message is Git's.
        """
        harmless = without_secrets(os.environ)
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if name not in _ELSEWHERE and (name in harmless or name.startswith(_OF_COMMITS))
            },
            "GIT_TERMINAL_PROMPT": "0",
            # A partial clone would fetch missing objects from the address in its configuration.
            "GIT_ALLOW_PROTOCOL": "none",
            "LC_ALL": "C",
        }
        done = subprocess.run(  # noqa: S603 - Git's own arguments, no shell
            ["git", "-C", str(self.root), *_WITHOUT_PROGRAMS, *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            output = (done.stderr.strip() or done.stdout.strip()).splitlines()
            reason = printable_line(output[-1]) if output else f"exit status {done.returncode}"
            raise PushError(f"`git {arguments[0]}` failed in `{self.root}`: {reason}")
        return done.stdout.strip()

    def _check_configuration(self, git_directory: Path) -> None:
        """Raise if the repository's own files make Git run a program or write elsewhere.

        Raises:
            UnsafePathError: its configuration names a program, or its Git directory has a link.
        """
        scopes = ["--local"]
        if self._is_set("extensions.worktreeConfig"):
            scopes.append("--worktree")
        for scope in scopes:
            text = self.git("config", scope, "--no-includes", "--null", "--list")
            for entry in filter(None, text.split("\0")):
                name, _, value = entry.partition("\n")
                if not (_HARMLESS.fullmatch(name) or _LFS.get(name) == value):
                    raise UnsafePathError(
                        f"The configuration of the repository `{self.root}` sets "
                        f"`{printable_line(name)}`, which may make Git run a program or use other "
                        "files. Set it with `git config --global` if you trust it, and remove it "
                        "from the repository with `git config --unset-all`."
                    )
        if (git_directory / "commondir").exists() and (self.root / ".git").is_dir():
            raise UnsafePathError(
                f"`{git_directory / 'commondir'}` leads to another Git directory. Clone the "
                "repository again with `git clone`."
            )
        for folder, folders, files in os.walk(git_directory):
            if Path(folder).parent.name == "objects":
                folders.clear()  # Git replaces loose objects and never follows links to them
            for name in (*folders, *files):
                place = Path(folder, name)
                if place.is_symlink() and not place.name.endswith(".sample"):
                    raise UnsafePathError(
                        f"`{place}` is a symbolic link, through which a commit would write. Clone "
                        "the repository again with `git clone`."
                    )

    def _is_set(self, name: str) -> bool:
        """Return whether the repository's own configuration sets a boolean to true, `yes` or 1."""
        try:
            arguments = ("--local", "--no-includes", "--type=bool", "--get", name)
            return self.git("config", *arguments) == "true"
        except PushError:  # it is not set
            return False

    def check_index(self) -> None:
        """Check that no other changes are staged, which the commit would include.

        Raises:
            PushError: a file is staged.
        """
        staged = self.git("diff", "--cached", "--name-only").splitlines()
        if staged:
            raise PushError(
                f"`{printable_line(staged[0])}` is staged in `{self.root}`. Commit or unstage it "
                "(`git restore --staged .`), and submit again."
            )

    @contextlib.contextmanager
    def branch(self, name: str) -> Iterator[None]:
        """Switch to a new branch; if the block raises, delete it and switch back.

        Raises:
            PushError: the branch already exists, or Git rejects it.
        """
        has_commits = self.has_commits()
        before = self.git("rev-parse", "--abbrev-ref", "HEAD") if has_commits else ""
        head = self.git("rev-parse", "--verify", "--quiet", "HEAD") if has_commits else ""
        unborn = "" if has_commits else self.git("symbolic-ref", "HEAD")
        self.git("switch", "--quiet", "--create", name)
        try:
            yield
        except BaseException:
            if unborn:
                self.git("symbolic-ref", "HEAD", unborn)
            elif before == "HEAD":
                self.git("switch", "--quiet", "--detach", head)
            else:
                self.git("symbolic-ref", "HEAD", f"refs/heads/{before}")
            if not unborn or self._has_branch(name):
                self.git("branch", "--quiet", "-D", name)
            raise

    def has_commits(self) -> bool:
        """Return whether the current branch has a commit."""
        return self._succeeds("rev-parse", "--verify", "--quiet", "HEAD")

    def _has_branch(self, name: str) -> bool:
        return self._succeeds("show-ref", "--verify", "--quiet", f"refs/heads/{name}")

    def _succeeds(self, *arguments: str) -> bool:
        try:
            self.git(*arguments)
        except PushError:
            return False
        return True

    def commit(self, paths: Sequence[Path], message: str) -> str:
        """Commit files and return the hash of the commit.

        Raises:
            PushError: Git rejects the commit; nothing remains staged.
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
    """Return whether a Git directory belongs to a clone, or to a work tree registered by Git."""
    dot_git = root / ".git"
    if dot_git.is_symlink():
        return False
    if dot_git.is_dir():
        return git_directory == dot_git
    try:
        if not dot_git.is_file():
            return False
        registered = git_directory / read_text(git_directory / "gitdir").strip()
        return os.path.normpath(registered) == str(dot_git)
    except (OSError, ValueError):
        return False
