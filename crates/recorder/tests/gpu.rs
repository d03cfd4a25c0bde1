//! What a CUDA library in a program without Python wrote reaches the trace: when all goes well, when the program is killed,
//! and when the recorder is.

use crate::roles::*;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use trace::tables::{SliceKind, Table};

/// How many kernels and launches there are; fails if one is there twice or a kernel has no launch.
fn kernels_and_launches(trace: &Path) -> (usize, usize) {
    let correlations = |table, column| {
        let rows = rows(trace, table);
        let all: Vec<i64> = rows.iter().filter_map(|row| integer(row, column)).collect();
        let each: HashSet<i64> = all.iter().copied().collect();
        assert_eq!(each.len(), all.len(), "some {column} of {table:?} twice");
        each
    };
    let (kernels, launches) = (correlations(Table::Gpu, "correlation"), correlations(Table::Slices, "id"));
    let slices = rows(trace, Table::Slices);
    assert!(slices.iter().all(|row| integer(row, "kind") == Some(SliceKind::ApiCall as i64)));
    assert_eq!(kernels, launches);
    (kernels.len(), launches.len())
}

fn said(trace: &Path) {
    let manifest = state(trace);
    let process = manifest.processes.iter().find(|process| process.program == "cuda-server").unwrap();
    assert_eq!((process.python.as_str(), process.devices.len()), ("", 1));
    assert_eq!(process.devices[0].name, "NVIDIA H200");
    let gpu = process.collectors.iter().find(|collector| collector.name == "gpu").unwrap();
    assert_eq!((gpu.state.as_str(), gpu.reason.as_str()), ("on", "CUPTI 130001"));
    assert!(manifest.notes.iter().any(|note| note.said() == "libcupti 13 was loaded"), "{:?}", manifest.notes);
    assert!(!manifest.notes.iter().any(|note| note.said().contains("scopes and calls of")), "{:?}", manifest.notes);
}

#[test]
fn a_program_that_is_killed_leaves_every_kernel() {
    let folder = Folder::new("gpu-workload");
    let trace = folder.path("trace");
    let variables: [(&str, &Path); 4] =
        [("OUTPUT", &trace), ("WRITER", Path::new("gpu")), ("COUNT", Path::new("50000")), ("END", Path::new("kill"))];
    assert_eq!(spawn("recorder", &variables).wait().unwrap().code(), Some(128 + 9));
    assert_eq!((kernels_and_launches(&trace), lost(&trace)), ((50_000, 50_000), 0));
    said(&trace);
}

/// Kills supervisor and recorder while their workload rests, and lets that go on to its end.
fn kill_at_half(recorder: &mut std::process::Child, trace: &Path, [half, go, written]: [&Path; 3]) {
    until("the program is half done", || half.exists());
    until("kernels are on disk", || !rows(trace, Table::Gpu).is_empty());
    kill_all(recorder, trace);
    fs::write(go, "").unwrap();
    until("the program goes on without its recorder", || written.exists());
    let segments = state(trace).segments.unwrap();
    let pid = fs::read_dir(&segments).unwrap().flatten().find_map(|entry| {
        entry.file_name().to_string_lossy().split_once('-').and_then(|(pid, _)| pid.parse::<i32>().ok())
    });
    // SAFETY: only asks.
    until("the program has ended", || unsafe { libc::kill(pid.unwrap(), 0) } != 0);
}

#[test]
fn a_recorder_that_is_killed_loses_no_kernel_and_writes_none_twice() {
    let folder = Folder::new("gpu-recorder");
    let (trace, half, go, written) =
        (folder.path("trace"), folder.path("half"), folder.path("go"), folder.path("written"));
    let variables: [(&str, &Path); 6] = [
        ("OUTPUT", &trace),
        ("WRITER", Path::new("gpu")),
        ("COUNT", Path::new("60000")),
        ("HALF", &half),
        ("GO", &go),
        ("WRITTEN", &written),
    ];
    let mut recorder = spawn("recorder", &variables);
    kill_at_half(&mut recorder, &trace, [&half, &go, &written]);
    let recovered = recorder::recover(&trace).unwrap().unwrap();
    assert!(recovered.records > 0 && recovered.lost == 0, "{recovered:?}");
    assert_eq!((kernels_and_launches(&trace), lost(&trace)), ((60_000, 60_000), 0));
    said(&trace);
    let files: Vec<_> = fs::read_dir(&trace).unwrap().flatten().map(|file| file.file_name()).collect();
    let of_gpu = files.iter().filter(|name| name.to_string_lossy().starts_with("gpu.")).count();
    assert_eq!(of_gpu, 1, "compacted: {files:?}");
}

#[test]
fn after_a_kill_two_segments_of_one_process_are_still_one_process() {
    let folder = Folder::new("gpu-both");
    let (trace, half, go, written) =
        (folder.path("trace"), folder.path("half"), folder.path("go"), folder.path("written"));
    let variables: [(&str, &Path); 6] = [
        ("OUTPUT", &trace),
        ("CUDA", Path::new("1")),
        ("COUNT", Path::new("2000")),
        ("HALF", &half),
        ("GO", &go),
        ("WRITTEN", &written),
    ];
    let mut recorder = spawn("recorder", &variables);
    kill_at_half(&mut recorder, &trace, [&half, &go, &written]);
    recorder::recover(&trace).unwrap().unwrap();
    assert_eq!((calls(&trace), rows(&trace, Table::Gpu).len(), lost(&trace)), (2000, 100, 0));
    let processes = state(&trace).processes;
    let writers: Vec<_> = processes.iter().filter(|process| process.python == "3.12.1").collect();
    assert_eq!((writers.len(), writers[0].program.as_str(), writers[0].devices.len()), (1, "writer", 1));
    // The scope that was open at the kill has its end, and what only its begin knew.
    let slices = rows(&trace, Table::Slices);
    let scopes = slices.iter().filter(|row| integer(row, "kind") == Some(SliceKind::Scope as i64));
    let ended: Vec<_> = scopes.filter(|row| integer(row, "dur_ns").is_some()).collect();
    assert_eq!((ended.len(), text(ended[0], "args").as_deref()), (1, Some("{\"model\":\"gpt2\"}")));
}

#[test]
fn the_command_is_told_where_the_cuda_library_is() {
    let folder = Folder::new("gpu-environment");
    let (package, told) = (folder.path("inferscope"), folder.path("told"));
    fs::create_dir_all(package.join("_inject")).unwrap();
    fs::write(package.join("_cuda.abi3.so"), "").unwrap();
    let command = format!("env > {}", told.display());
    let record = |name: &str, cuda: &str| {
        let trace = folder.path(name);
        let variables: [(&str, &Path); 6] = [
            ("OUTPUT", &trace),
            ("COMMAND", Path::new(&command)),
            ("INFERSCOPE_PACKAGE", &package),
            ("CUDA_INJECTION64_PATH", Path::new(cuda)),
            ("NVTX_INJECTION64_PATH", Path::new("")),
            ("RATE", Path::new("0")),
        ];
        assert_eq!(spawn("recorder", &variables).wait().unwrap().code(), Some(0));
        (fs::read_to_string(&told).unwrap(), sentences(&state(&trace).notes))
    };
    let library = package.join("_cuda.abi3.so").display().to_string();
    let (told, notes) = record("free", "");
    for line in ["INFERSCOPE_GPU_DETAIL=launch", "INFERSCOPE_OVERHEAD_BUDGET=auto", "INFERSCOPE_LAYERS=false"] {
        assert!(told.lines().any(|there| there == line), "{line}: {told}");
    }
    for variable in ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"] {
        assert!(told.contains(&format!("{variable}={library}\n")), "{told}");
    }
    assert!(!notes.iter().any(|note| note.contains("INJECTION")), "{notes:?}");
    let (told, notes) = record("taken", "/opt/nsight/inject.so");
    assert!(told.contains("CUDA_INJECTION64_PATH=/opt/nsight/inject.so\n"), "{told}");
    let note = "the GPU is not recorded: CUDA_INJECTION64_PATH is already set to /opt/nsight/inject.so (Nsight); \
                unset it to record with inferscope";
    assert!(notes.iter().any(|there| there == note), "{notes:?}");
}
