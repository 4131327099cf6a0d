"""SkillHorizon: long business tasks of any size, and where agents break on them.

``import skillhorizon as sh``: ``sh.environments()``, ``sh.environment(name)``, ``sh.generate(…)``,
``sh.load_task(path)``, ``sh.run(task, agent=…)``, ``sh.evaluate(task, …)``, ``sh.replay(…)``. They live in
``skillhorizon.api``, which is loaded when one of them is first used: core and environments import nothing from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillhorizon.api import Run, environment, environments, evaluate, generate, load_task, replay, run

__version__ = "0.1.0"
__all__ = ["Run", "environment", "environments", "evaluate", "generate", "load_task", "replay", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from skillhorizon import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
