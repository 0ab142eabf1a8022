"""Tests of the owner run against the real servers in this process."""

from served_apps import almost_noiseless, both_apps, serving

__all__ = ["almost_noiseless", "both_apps", "serving"]
