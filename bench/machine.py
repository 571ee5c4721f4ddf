"""What a result file says about the machine, for the benchmarks that are written in Python."""

import datetime
import os
import subprocess


def first_line(*command):
    """What a command says first, or None if it fails or is not there."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None
    return said[0] if said else None


def ask_card(question):
    return first_line("nvidia-smi", f"--query-gpu={question}", "--format=csv,noheader,nounits", "-i", "0")


def sm_clock_mhz():
    clock = ask_card("clocks.sm")
    return int(clock) if clock and clock.isdigit() else None


def commit():
    """Of these sources, with "-dirty" where they differ from it; a copy without .git may be told it."""
    told = os.environ.get("TOKENYARD_COMMIT")
    sources = os.path.dirname(os.path.abspath(__file__))
    describe = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    return told or first_line("git", "-C", sources, *describe)


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def command_line(argv):
    """What was typed, of files their names alone: folders are this machine's."""
    return " ".join(os.path.basename(word) for word in argv)
