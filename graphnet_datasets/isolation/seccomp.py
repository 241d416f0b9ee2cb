"""A seccomp filter that refuses system calls which no job needs.

The filter is a classic Berkeley packet filter program that the kernel runs on each system call. A
refused call fails with EPERM. See seccomp(2).
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from .landlock import forbid_new_privileges

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
_MISSING = 0x00050000 | errno.ENOSYS
_LOAD, _EQUAL, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets into the kernel's `struct seccomp_data`: the lower halves of the arguments."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_PACKET, _AF_VSOCK = 1, 2, 10, 17, 40
_SOCK_TYPE_MASK, _SOCK_RAW = 0xF, 3
_X32_BIT = 0x40000000

_CALLS = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "pidfd_getfd": 438,
        "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "open_tree": 428,
        "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
        "mount_setattr": 442,
        "setns": 308, "unshare": 272,
        "add_key": 248, "request_key": 249, "keyctl": 250,
        "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
        "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246,
        "kexec_file_load": 320, "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163,
        "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305,
        "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "syslog": 103,
        "quotactl": 179, "open_by_handle_at": 304, "name_to_handle_at": 303, "vhangup": 153,
        "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "pidfd_getfd": 438,
        "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "open_tree": 428,
        "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
        "mount_setattr": 442,
        "setns": 268, "unshare": 97,
        "add_key": 217, "request_key": 218, "keyctl": 219,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
        "init_module": 105, "finit_module": 273, "delete_module": 106, "kexec_load": 104,
        "kexec_file_load": 294, "reboot": 142, "swapon": 224, "swapoff": 225, "acct": 89,
        "settimeofday": 170, "clock_settime": 112, "adjtimex": 171, "clock_adjtime": 266,
        "sethostname": 161, "setdomainname": 162, "syslog": 116,
        "quotactl": 60, "open_by_handle_at": 265, "name_to_handle_at": 264, "vhangup": 58,
        "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180,
    },
}  # fmt: skip
"""The refused system calls and their numbers, by architecture.

The last four create shared memory, semaphores and queues that outlive the processes of a job.
"""
_SOCKET_CALL = {"x86_64": 41, "aarch64": 198}
_CLONE_CALL = {"x86_64": 56, "aarch64": 220}
_CLONE3_CALL = 435
_NAMESPACE_FLAGS = 0x7E020000
"""The flags of `clone` that create namespaces, in which a process can gain capabilities."""
_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def is_supported() -> bool:
    """Return whether a filter exists for this machine's architecture.

    >>> isinstance(is_supported(), bool)
    True
    """
    return platform.machine() in _CALLS


def restrict_calls(*, has_unix_sockets: bool) -> bool:
    """Refuse the listed system calls, raw sockets and optionally Unix sockets from now on.

    Returns:
        False if the kernel or the architecture does not support the filter.
    """
    if not is_supported():
        return False
    program = _program(platform.machine(), has_unix_sockets)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    forbid_new_privileges()
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), header, 0, 0) == 0


def _program(machine: str, has_unix_sockets: bool) -> bytes:
    """Return the filter for an architecture; calls from any other architecture are refused."""
    refuse, allow = (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)
    lines = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[machine]), refuse]
    lines.append((_LOAD, 0, 0, _NUMBER))
    if machine == "x86_64":
        lines += [(_ANY_BIT, 0, 1, _X32_BIT), refuse]
    for number in _CALLS[machine].values():
        lines += [(_EQUAL, 0, 1, number), refuse]
    # The flags of `clone3` are in memory, which a filter cannot read. Without `clone3`, the C
    # library uses `clone`.
    lines += [(_EQUAL, 0, 1, _CLONE3_CALL), (_RETURN, 0, 0, _MISSING)]
    lines += [(_EQUAL, 0, 4, _CLONE_CALL[machine]), (_LOAD, 0, 0, _FIRST)]
    lines += [(_ANY_BIT, 0, 1, _NAMESPACE_FLAGS), refuse, allow]
    lines += [(_EQUAL, 1, 0, _SOCKET_CALL[machine]), allow, (_LOAD, 0, 0, _FIRST)]
    families = [_AF_PACKET, _AF_VSOCK] + ([] if has_unix_sockets else [_AF_UNIX])
    for family in families:
        lines += [(_EQUAL, 0, 1, family), refuse]
    # Netlink sockets are raw by type but harmless; the C library uses them to list interfaces.
    lines += [(_EQUAL, 2, 0, _AF_INET), (_EQUAL, 1, 0, _AF_INET6), allow]
    lines += [(_LOAD, 0, 0, _SECOND), (_AND, 0, 0, _SOCK_TYPE_MASK)]
    lines += [(_EQUAL, 0, 1, _SOCK_RAW), refuse, allow]
    return b"".join(struct.pack("HBBI", *line) for line in lines)
