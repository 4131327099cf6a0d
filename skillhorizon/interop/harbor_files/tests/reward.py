"""The rewards of an evaluation: task success (also as ``reward``) and local-goal completion, each from 0 to 1."""

from __future__ import annotations

import json
import sys
from pathlib import Path

found = json.load(sys.stdin)
expected = Path(sys.argv[1]).read_text(encoding="utf-8").strip()
if found["task_id"] != expected:
    sys.exit(f"this is the journal of {found['task_id']}, not of {expected}")
success = float(found["success"])
print(json.dumps({"reward": success, "task_success": success, "lgc": found["lgc"]}))
