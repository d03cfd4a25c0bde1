"""Where PyTorch's profiler is."""
