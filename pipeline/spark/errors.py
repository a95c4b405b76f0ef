"""What a user can do something about; anything else is a defect of ours and shows its stack."""


class PipelineError(Exception):
    """A command cannot do what it was asked to; the message says why, and what to do."""
