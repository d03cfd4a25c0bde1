//! Functions that every Python program has and whose name tells what they do. Names come in three forms: as a frame shows them
//! (`EpollSelector.select` in `selectors.py`; before Python 3.11 only `select`), as a native symbol (`take_gil`), and as a
//! recorded call of a C function (`select.epoll.poll`).

use super::is;
use timeline::Name;
use timeline::cuda_calls::CudaCall;

/// Python functions that wait, by the end of their file's path.
const WAIT: [(&str, &[&str], u16); 16] = [
    ("threading.py", &["wait", "acquire", "join", "_wait_for_tstate_lock", "__enter__"], is::WAITS_FOR_LOCK),
    ("queue.py", &["get", "put", "join"], is::WAITS_FOR_LOCK),
    ("multiprocessing/synchronize.py", &["acquire", "wait", "__enter__"], is::WAITS_FOR_LOCK),
    ("multiprocessing/queues.py", &["get", "put"], is::WAITS_FOR_LOCK),
    ("concurrent/futures/_base.py", &["result", "wait", "exception"], is::WAITS_FOR_LOCK),
    ("selectors.py", &["select"], is::WAITS_FOR_IO),
    ("socket.py", &["accept", "readinto", "recv", "recv_into", "sendall", "create_connection"], is::WAITS_FOR_IO),
    ("ssl.py", &["read", "write", "recv", "recv_into", "send", "sendall", "do_handshake"], is::WAITS_FOR_IO),
    ("subprocess.py", &["wait", "_wait", "_try_wait", "communicate", "_communicate", "poll"], is::WAITS_FOR_IO),
    ("multiprocessing/connection.py", &["_recv", "_send", "wait", "poll", "accept", "_poll"], is::WAITS_FOR_IO),
    ("multiprocessing/popen_fork.py", &["poll", "wait"], is::WAITS_FOR_IO),
    ("asyncore.py", &["poll"], is::WAITS_FOR_IO),
    ("zmq/sugar/socket.py", &["recv", "send", "poll", "recv_multipart"], is::WAITS_FOR_IO),
    ("zmq/sugar/poll.py", &["poll"], is::WAITS_FOR_IO),
    ("torch/cuda/__init__.py", &["synchronize"], is::WAITS_FOR_GPU),
    ("torch/cuda/streams.py", &["synchronize"], is::WAITS_FOR_GPU),
];

/// Native symbols, and C functions by the end of their dotted name.
const NATIVE: [(&str, u16); 24] = [
    ("take_gil", is::TAKES_GIL),
    ("PyEval_RestoreThread", is::TAKES_GIL),
    ("PyEval_AcquireThread", is::TAKES_GIL),
    ("PyGILState_Ensure", is::TAKES_GIL),
    ("PyThread_acquire_lock_timed", is::WAITS_FOR_LOCK),
    ("lock_PyThread_acquire_lock", is::WAITS_FOR_LOCK),
    ("lock.acquire", is::WAITS_FOR_LOCK),
    ("RLock.acquire", is::WAITS_FOR_LOCK),
    ("lock.__enter__", is::WAITS_FOR_LOCK),
    ("RLock.__enter__", is::WAITS_FOR_LOCK),
    ("SimpleQueue.get", is::WAITS_FOR_LOCK),
    ("time.sleep", is::WAITS_FOR_LOCK),
    ("time_sleep", is::WAITS_FOR_LOCK),
    ("select.select", is::WAITS_FOR_IO),
    ("poll.poll", is::WAITS_FOR_IO),
    ("epoll.poll", is::WAITS_FOR_IO),
    ("epoll_wait", is::WAITS_FOR_IO),
    ("socket.recv", is::WAITS_FOR_IO),
    ("socket.recv_into", is::WAITS_FOR_IO),
    ("socket.accept", is::WAITS_FOR_IO),
    ("socket.connect", is::WAITS_FOR_IO),
    ("socket.sendall", is::WAITS_FOR_IO),
    ("posix.waitpid", is::WAITS_FOR_IO | is::CHILD),
    ("posix.wait", is::WAITS_FOR_IO | is::CHILD),
];

const LOGGING: [&str; 4] = ["logging/__init__.py", "logging/handlers.py", "loguru/_logger.py", "loguru/_handler.py"];

const EVENT_LOOP: [(&str, &[&str]); 4] = [
    ("asyncio/base_events.py", &["run_forever", "_run_once", "run_until_complete"]),
    ("asyncio/events.py", &["_run"]),
    ("asyncio/runners.py", &["run"]),
    ("uvloop/__init__.py", &["run", "wrapper"]),
];

/// Functions that compile or tune device code; an empty list stands for all of a file or folder. What these packages do in every call
/// of compiled code (`eval_frame.py`, `Autotuner.run`) is not among them.
const COMPILE: [(&str, &[&str]); 20] = [
    ("torch/_dynamo/symbolic_convert.py", &[]),
    ("torch/_dynamo/variables/", &[]),
    ("torch/_dynamo/bytecode_transformation.py", &[]),
    ("torch/_subclasses/fake_tensor.py", &[]),
    ("torch/fx/experimental/symbolic_shapes.py", &[]),
    ("torch/_dynamo/convert_frame.py", &["_compile", "compile_inner", "_compile_inner", "transform"]),
    ("torch/_dynamo/output_graph.py", &["compile_and_call_fx_graph", "call_user_compiler", "_call_user_compiler"]),
    (
        "torch/_inductor/compile_fx.py",
        &["compile_fx", "compile_fx_inner", "_compile_fx_inner", "fx_codegen_and_compile"],
    ),
    ("torch/_inductor/graph.py", &["compile_to_module", "compile_to_fn", "codegen", "_compile_to_module"]),
    ("torch/_inductor/async_compile.py", &["wait", "triton", "_wait_futures"]),
    ("torch/_inductor/select_algorithm.py", &[]),
    (
        "torch/_inductor/runtime/triton_heuristics.py",
        &["benchmark_all_configs", "autotune_to_one_config", "bench", "precompile", "_precompile_config"],
    ),
    ("triton/compiler/", &[]),
    ("triton/runtime/autotuner.py", &["_bench", "benchmark", "prune_configs"]),
    ("triton/runtime/jit.py", &["_do_compile", "compile"]),
    ("triton/testing.py", &["do_bench", "do_bench_cudagraph"]),
    ("torch/utils/cpp_extension.py", &[]),
    ("jax/_src/compiler.py", &[]),
    ("jax/_src/interpreters/mlir.py", &[]),
    ("jax/_src/interpreters/partial_eval.py", &["trace_to_jaxpr_dynamic", "trace_to_jaxpr", "trace_to_jaxpr_nounits"]),
];

const COMMUNICATE: [&str; 2] =
    ["torch/distributed/distributed_c10d.py", "torch/distributed/_functional_collectives.py"];

/// Where children are started and waited for.
const CHILD: [&str; 4] = [
    "subprocess.py",
    "multiprocessing/popen_fork.py",
    "multiprocessing/popen_spawn_posix.py",
    "multiprocessing/popen_forkserver.py",
];

/// Where modules are imported, in a Python that has not frozen it.
const IMPORT: [&str; 2] = ["importlib/_bootstrap.py", "importlib/_bootstrap_external.py"];

/// What the processes of multiprocessing begin with.
const BEGIN: [(&str, &str); 2] =
    [("multiprocessing/spawn.py", "spawn_main"), ("multiprocessing/forkserver.py", "main")];

/// Where Python keeps what is not the program's own.
const LIBRARY: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python3"];

/// Files that stand for what somebody typed, and not for code that a library generated (`<string>`, `<eval_with_key>.3`).
const TYPED: [&str; 4] = ["<stdin>", "<console>", "<ipython-input", "<input>"];

/// Libraries in which a tensor framework runs its operators, by the beginning of the file's name.
const OPERATOR_LIBRARIES: [&str; 7] =
    ["libtorch", "libc10", "libjax", "xla_extension", "libtensorflow", "_pywrap_tensorflow", "onnxruntime_pybind11"];

/// Functions of theirs that go through lists and tuples of Python: `torch.tensor([...])`.
const FROM_VALUES: [&str; 4] = ["internal_new_from_data", "recursive_store", "infer_scalar_type", "compute_sizes"];

/// And the Python between a model's code and them.
const OPERATOR_FILES: [&str; 4] = ["torch/nn/", "torch/functional.py", "torch/_tensor.py", "torch/_ops.py"];

/// Where threads of one process pass things to each other. Not between processes: there objects are copied, which is work.
const BETWEEN_THREADS: [&str; 2] = ["threading.py", "queue.py"];

pub fn is_between_threads(file: &str) -> bool {
    let named = |end: &str| file.strip_suffix(end).is_some_and(|head| head.is_empty() || head.ends_with('/'));
    BETWEEN_THREADS.iter().any(|end| named(end)) && !file.contains("/multiprocessing/")
}

pub fn bits(name: &Name, call: CudaCall) -> u16 {
    let (file, text) = (&*name.file, &*name.text);
    let python = file.ends_with(".py") || file.ends_with(".pyx") || file.ends_with(".ipynb") || file.starts_with('<');
    if !python {
        let known = |end: &str| text.strip_suffix(end).is_some_and(|head| head.is_empty() || head.ends_with('.'));
        let device = if waits_for_device(call) { is::WAITS_FOR_GPU } else { 0 };
        let speaks = if text.starts_with("nccl") || text.starts_with("gloo::") { is::COMMUNICATES } else { 0 };
        let library = file.rsplit('/').next().unwrap_or(file);
        let operates = OPERATOR_LIBRARIES.iter().any(|start| library.starts_with(start));
        let values = FROM_VALUES.iter().any(|name| text.contains(name));
        let operator = if operates && values { is::FROM_VALUES } else { 0 } | if operates { is::OPERATOR } else { 0 };
        let bits = is::NATIVE | device | speaks | operator;
        return NATIVE.iter().filter(|(end, _)| known(end)).fold(bits, |bits, known| bits | known.1);
    }
    let named = |end: &str| file.strip_suffix(end).is_some_and(|head| head.is_empty() || head.ends_with('/'));
    let last = text.rsplit('.').next().unwrap_or(text);
    let mut bits = 0;
    // torch.profiler writes paths from where Python found them.
    let generated = file.starts_with('<') && !TYPED.iter().any(|start| file.starts_with(start));
    if LIBRARY.iter().any(|part| file.contains(part)) || generated || file.starts_with("torch/") {
        bits |= is::LIBRARY;
    }
    if last.starts_with('<') && last != "<module>" {
        bits |= is::PIECE;
    }
    bits |= WAIT.iter().filter(|(end, names, _)| names.contains(&last) && named(end)).fold(0, |all, one| all | one.2);
    if LOGGING.iter().any(|end| named(end)) {
        bits |= is::LOGGING | is::LIBRARY;
    }
    if CHILD.iter().any(|end| named(end)) {
        bits |= is::CHILD;
    }
    if file.starts_with("<frozen importlib") || IMPORT.iter().any(|end| named(end)) {
        bits |= is::IMPORTS;
    }
    if BEGIN.iter().any(|(end, name)| *name == last && named(end)) {
        bits |= is::BEGINS_PROCESS;
    }
    if EVENT_LOOP.iter().any(|(end, names)| names.contains(&last) && named(end)) {
        bits |= is::EVENT_LOOP | is::LIBRARY;
    }
    let part = |part: &str| if part.ends_with('/') { file.contains(part) } else { named(part) };
    if COMPILE.iter().any(|(at, names)| (names.is_empty() || names.contains(&last)) && part(at)) {
        bits |= is::COMPILES | is::LIBRARY;
    }
    if COMMUNICATE.iter().any(|end| named(end)) {
        bits |= is::COMMUNICATES | is::LIBRARY;
    }
    if bits & is::LIBRARY != 0 && OPERATOR_FILES.iter().any(|at| part(at)) {
        bits |= is::OPERATOR;
    }
    bits
}

/// CUDA's waits, of the runtime and of the driver, and HIP's: `cudaStreamSynchronize`, `cuCtxSynchronize_v2`, `hipEventSynchronize`.
fn waits_for_device(call: CudaCall) -> bool {
    call.is_api() && call.waits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, file: &str) -> u16 {
        bits(&Name { text: text.into(), file: file.into(), line: 0 }, CudaCall::of(text))
    }

    #[test]
    fn functions_are_known_with_and_without_their_class() {
        let std = "/usr/lib/python3.12";
        for text in ["select", "EpollSelector.select"] {
            assert_eq!(of(text, &format!("{std}/selectors.py")), is::LIBRARY | is::WAITS_FOR_IO);
        }
        assert_eq!(of("Condition.wait", &format!("{std}/threading.py")), is::LIBRARY | is::WAITS_FOR_LOCK);
        assert_eq!(of("Handle._run", &format!("{std}/asyncio/events.py")), is::LIBRARY | is::EVENT_LOOP);
        assert_eq!(of("StreamHandler.emit", &format!("{std}/logging/__init__.py")), is::LIBRARY | is::LOGGING);
        assert_eq!(of("select", "/srv/my_selectors.py"), 0);
        assert_eq!(of("wait", "threading.py"), is::WAITS_FOR_LOCK);
    }

    #[test]
    fn imports_and_children_are_known() {
        for file in ["<frozen importlib._bootstrap>", "/usr/lib/python3.12/importlib/_bootstrap_external.py"] {
            assert_eq!(of("_find_and_load", file), is::LIBRARY | is::IMPORTS);
        }
        assert_eq!(of("import_module", "/usr/lib/python3.12/importlib/__init__.py"), is::LIBRARY);
        let waits = is::LIBRARY | is::CHILD | is::WAITS_FOR_IO;
        assert_eq!(of("Popen.communicate", "/usr/lib/python3.12/subprocess.py"), waits);
        assert_eq!(of("posix.waitpid", ""), is::NATIVE | is::CHILD | is::WAITS_FOR_IO);
    }

    #[test]
    fn what_compiles_is_told_from_what_runs_compiled_code() {
        let of = |text: &str, file: &str| of(text, &format!("/usr/lib/python3.12/site-packages/{file}"));
        assert_eq!(of("_compile", "torch/_dynamo/convert_frame.py"), is::LIBRARY | is::COMPILES);
        assert_eq!(of("make_ir", "triton/compiler/compiler.py"), is::LIBRARY | is::COMPILES);
        assert_eq!(of("Autotuner._bench", "triton/runtime/autotuner.py"), is::LIBRARY | is::COMPILES);
        for (text, file) in [
            ("Autotuner.run", "triton/runtime/autotuner.py"),
            ("_fn", "torch/_dynamo/eval_frame.py"),
            ("CachingAutotuner.run", "torch/_inductor/runtime/triton_heuristics.py"),
        ] {
            assert_eq!(of(text, file), is::LIBRARY);
        }
        assert_eq!(of("all_reduce", "torch/distributed/distributed_c10d.py"), is::LIBRARY | is::COMMUNICATES);
    }

    #[test]
    fn what_runs_operators_is_known() {
        let packages = "/usr/lib/python3.12/site-packages";
        assert_eq!(
            of("at::native::linear", &format!("{packages}/torch/lib/libtorch_cpu.so")),
            is::NATIVE | is::OPERATOR
        );
        assert_eq!(of("Linear.forward", &format!("{packages}/torch/nn/modules/linear.py")), is::LIBRARY | is::OPERATOR);
        assert_eq!(
            of("torch::utils::internal_new_from_data", &format!("{packages}/torch/lib/libtorch_python.so")),
            is::NATIVE | is::OPERATOR | is::FROM_VALUES
        );
        assert_eq!(of("PyObject_GetAttr", "/usr/lib/libpython3.12.so.1.0"), is::NATIVE);
        assert_eq!(of("Dataset.__getitem__", &format!("{packages}/torch/utils/data/dataset.py")), is::LIBRARY);
        assert_eq!(of("forward", "/srv/torch/nn/mine.py"), 0);
    }

    #[test]
    fn generated_code_is_no_code_of_the_program() {
        for file in ["<string>", "<eval_with_key>.3", "<attrs generated init app.Config>"] {
            assert_eq!(of("__init__", file), is::LIBRARY, "{file}");
        }
        for file in ["<stdin>", "<ipython-input-3-0a>"] {
            assert_eq!(of("work", file), 0, "{file}");
        }
    }

    #[test]
    fn pieces_natives_and_c_functions() {
        assert_eq!(of("Tokenizer.build.<locals>.<lambda>", "/srv/a.py"), is::PIECE);
        assert_eq!(
            (of("<listcomp>", "a.py"), of("<module>", "a.py"), of("outer.<locals>.inner", "a.py")),
            (is::PIECE, 0, 0)
        );
        assert_eq!(of("take_gil", "/usr/lib/libpython3.12.so.1.0"), is::NATIVE | is::TAKES_GIL);
        assert_eq!(of("_thread.lock.acquire", ""), is::NATIVE | is::WAITS_FOR_LOCK);
        assert_eq!(of("numpy.dot", ""), is::NATIVE);
        for wait in ["cudaStreamSynchronize", "cudaDeviceSynchronize_v3020", "cuCtxSynchronize"] {
            assert_eq!(of(wait, ""), is::NATIVE | is::WAITS_FOR_GPU);
        }
        assert_eq!((of("cudaLaunchKernel", ""), of("Synchronize", "")), (is::NATIVE, is::NATIVE));
    }
}
