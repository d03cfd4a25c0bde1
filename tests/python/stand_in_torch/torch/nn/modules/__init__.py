"""Where modules and their hooks come from."""
