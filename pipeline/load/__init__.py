"""List-bucketed load: skewed values get files of their own."""
