"""What the compiler was told to leave alone."""

skipped = []
skip_code = skipped.append
