"""SkillHorizon: long business tasks of any size, and where agents break on them."""
