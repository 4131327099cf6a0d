"""The scripted roles: what a perfect executor reaches, and what the audit finds and has put right."""

from __future__ import annotations

import pytest

import skillhorizon as sh
