"""Support modules that several folders of tests share."""
