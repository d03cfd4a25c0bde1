"""A CUDA graph that captures nothing."""


class CUDAGraph:
    def capture_begin(self, pool=None):
        return pool

    def capture_end(self):
        return None
