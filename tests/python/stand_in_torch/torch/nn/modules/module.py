"""A module is called through `_wrapped_call_impl`, which runs global hooks around `forward`, as PyTorch's does."""

_global_forward_pre_hooks = {}
_global_forward_hooks = {}


class Handle:
    def __init__(self, hooks, hook):
        self._hooks, self._number = hooks, id(hook)
        hooks[self._number] = hook

    def remove(self):
        self._hooks.pop(self._number, None)


def register_module_forward_pre_hook(hook):
    return Handle(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook):
    return Handle(_global_forward_hooks, hook)


class Module:
    _compiled_call_impl = None

    def __init__(self, **children):
        self._modules = children

    def __getattr__(self, name):
        try:
            return self.__dict__["_modules"][name]
        except KeyError:
            raise AttributeError(name) from None

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self._modules.items():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        for hook in list(_global_forward_pre_hooks.values()):
            hook(self, args)
        result = self.forward(*args, **kwargs)
        for hook in list(_global_forward_hooks.values()):
            hook(self, args, result)
        return result

    __call__ = _wrapped_call_impl
