"""Who may use which handle, and act for whom."""
