"""The compiler's native part."""
