"""The compiler."""
