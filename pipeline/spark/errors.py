"""The error that a user can do something about; any other is a defect of ours and shows its stack."""


class PipelineError(Exception):
    """A command cannot do its work; the message says why, and what to do."""
