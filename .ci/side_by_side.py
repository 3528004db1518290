"""Run commands at the same time; the exit status is 0 if all succeed.

``side_by_side.py name=command ...``: each line of output begins with the name of its command, and
at the end stands how long each took. When one fails the others go on, so that one run shows all
faults.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time

POSIX = os.name == "posix"


def start(command):
    """Start a command in a process group of its own, its errors among its output."""
    return subprocess.Popen(
        command,
        shell=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=POSIX,
    )


def follow(name, width, child, took, started):
    """Print the output of a command as it comes, and note when it ended."""
    for line in child.stdout:
        print(f"{name:<{width}} | {line.rstrip()}", flush=True)
    child.wait()
    took[name] = time.monotonic() - started


def end(child):
    """End a command and all that it started."""
    if child.poll() is None:
        if POSIX:
            os.killpg(child.pid, signal.SIGTERM)
        else:
            child.terminate()


def run(commands):
    """Run named commands together; return the names of those that failed."""
    started, took, width = time.monotonic(), {}, max(map(len, commands))
    children = {name: start(command) for name, command in commands.items()}
    threads = [
        threading.Thread(target=follow, args=(name, width, child, took, started))
        for name, child in children.items()
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        for child in children.values():
            end(child)
        raise
    for name, child in children.items():
        verdict = "done" if child.returncode == 0 else f"FAILED (status {child.returncode})"
        minutes, seconds = divmod(round(took[name]), 60)
        print(f"{name:<{width}} : {verdict}, {minutes}:{seconds:02}", flush=True)
    return [name for name, child in children.items() if child.returncode != 0]


def main(arguments):
    """Read name=command, run all of them, and return the exit status."""
    commands = {}
    for argument in arguments:
        found = re.fullmatch(r"([\w-]+)=(.+)", argument, re.DOTALL)
        if found is None or found[1] in commands:
            sys.exit(f"{argument!r} is not of the form name=command, with a name of its own")
        commands[found[1]] = found[2]
    if not commands:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    return 1 if run(commands) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
