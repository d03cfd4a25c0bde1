"""The functions that the program calls: the native ones, or where these cannot be loaded, ones that do nothing."""

native_error: "Exception | None" = None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._native import Scope, __version__, mark_event, scope, step
else:
    try:
        from ._native import Scope, __version__, mark_event, scope, step
    except Exception as error:
        from ._nothing import Scope, __version__, mark_event, scope, step

        native_error = error

__all__ = ["Scope", "__version__", "mark_event", "native_error", "scope", "step"]
