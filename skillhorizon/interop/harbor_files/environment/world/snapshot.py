"""Makes one whole file of a journal and the log beside it: ``snapshot.py RUN COPY``."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

run, copy = sys.argv[1:]
Path(copy).unlink(missing_ok=True)
sqlite3.connect(run).execute("VACUUM INTO ?", (copy,))
