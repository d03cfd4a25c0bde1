//! Opens SQLite exports of Nsight Systems: whole, with tables and columns missing, of other programs, and damaged.

use crate::support::{Random, draw};
use rusqlite::Connection;
use std::path::Path;
use timeline::fixture::TemporaryFolder;
use timeline::gpu::detail;
use timeline::{OpenError, Timeline};

const PID: i64 = (1 << 48) | (111 << 24);
const STRINGS: &str = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
    INSERT INTO StringIds VALUES (1,'cudaLaunchKernel_v7000'),(2,'cudaMemcpyAsync_v3020'),(3,'void gemm<float>()'),(4,'gemm'),(5,'worker'),(6,'forward');";
const RUNTIME: &str = "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000,3000,0,PID+112,7,1),(4000,5000,0,PID+112,8,2);";
const KERNEL: &str = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,
        globalPid INTEGER, demangledName INTEGER, shortName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
        blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (2500,4500,0,1,7,7,PID,3,4,32,8,2,1,128,1,1,0,1024);";
const MEMCPY: &str = "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,
        globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (6000,7000,0,1,7,8,PID,4096,2,2,0);";
const REST: &str = "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER);
    INSERT INTO NVTX_EVENTS VALUES (500,9000,59,'ProfilerStep#3',PID+112,NULL,0),(600,8000,59,NULL,PID+112,6,1),(0,NULL,75,'app',PID+112,NULL,1),
        (900,3500,59,'aten::mm, op_id = 9, sizes = [[2, 3], [3, 4]]',PID+112,NULL,0),(9500,NULL,34,'done',PID+112,NULL,0);
    CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT); INSERT INTO PROCESSES VALUES (PID,111,'python3');
    CREATE TABLE ThreadNames (nameId INTEGER, globalTid INTEGER); INSERT INTO ThreadNames VALUES (5,PID+112);
    CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, uuid TEXT, smCount INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER);
    INSERT INTO TARGET_INFO_GPU VALUES (3,'NVIDIA H100','GPU-1',132,85018279936,3350000000000);
    CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER); INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3,0,111);
    CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER); INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1779630014975716426);
    CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (7000,8000,0,1,7,9,PID,3);";

fn write(path: &Path, parts: &[&str]) {
    let _ = std::fs::remove_file(path);
    let text = parts.concat().replace("PID", &PID.to_string());
    Connection::open(path).unwrap().execute_batch(&text).unwrap();
}

fn open(parts: &[&str]) -> Result<Timeline, OpenError> {
    let folder = TemporaryFolder::new("nsys");
    let path = folder.path().join("a report?.sqlite");
    write(&path, parts);
    let timeline = timeline::open(&path)?;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is written beside the file");
    crate::support::touch(&timeline);
    Ok(timeline)
}

#[test]
fn a_graph_that_was_timed_as_a_whole_keeps_its_device_busy() {
    let graph = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
            correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER);
        INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (5500,8500,0,1,7,8,PID,42,43);";
    let timeline = open(&[STRINGS, RUNTIME, graph, REST]).unwrap();
    let piece = timeline.gpu.work.get(0);
    assert!(piece.kind.is_busy());
    assert_eq!((piece.start, piece.dur, piece.graph, piece.node), (5500, 3000, 42, 0));
    assert_eq!(timeline.names.text(piece.name), "CUDA graph 42, as a whole");
    assert!(timeline.gpu.work.launch(0).is_some(), "by the call that launched it");
    let notes = timeline.notes_said().join("\n");
    assert!(notes.contains("1 launches of CUDA graphs") && notes.contains("--cuda-graph-trace=node"), "{notes}");
}

#[test]
fn an_export_is_read_whole() {
    let timeline = open(&[STRINGS, RUNTIME, KERNEL, MEMCPY, REST]).unwrap();
    assert_eq!(
        draw(&timeline),
        [
            "step ProfilerStep 500+8500",
            "nvtx forward 600+7400",
            "c-call aten::mm 900+2600",
            "api cudaLaunchKernel 1000+2000",
            "api cudaMemcpyAsync 4000+1000",
            "nvtx done 9500+0",
        ]
    );
    assert_eq!(timeline.slices.args(1), Some(r#"{"domain":"app"}"#));
    assert_eq!(timeline.slices.args(2), Some(r#"{"Input Dims":[[2, 3], [3, 4]]}"#));
    let (process, track, device) = (&timeline.processes[0], &timeline.tracks[0], &timeline.gpu.devices[0]);
    assert_eq!((process.pid, &*process.program, track.tid, &*track.name), (111, "python3", 112, "worker"));
    assert_eq!((&*device.name, device.ordinal, device.multiprocessors), ("NVIDIA H100", 0, Some(132)));
    let gpu = &timeline.gpu;
    let kernel = gpu.work.get(0);
    assert_eq!(
        (timeline.names.text(kernel.name), kernel.dur, gpu.shape(0).unwrap().grid),
        ("void gemm<float>()", 2000, [8, 2, 1])
    );
    let copy = gpu.work.get(1);
    assert_eq!(
        (copy.bytes, copy.copy().direction, copy.copy().source, copy.copy().target),
        (4096, detail::D2H, detail::DEVICE, detail::PAGEABLE)
    );
    assert_eq!((gpu.clock.linked, gpu.clock.unlinked, gpu.work.len()), (2, 0, 3));
    assert_eq!(
        (timeline.info.created_unix_ns, timeline.notes.len()),
        (1_779_630_014_975_716_426, 0),
        "{:?}",
        timeline.notes_said()
    );
}

#[test]
fn what_was_not_recorded_has_no_table() {
    let only_gpu = open(&[STRINGS, KERNEL]).unwrap();
    assert_eq!((only_gpu.gpu.clock.linked, only_gpu.gpu.clock.unlinked, only_gpu.slices.len()), (0, 1, 0));
    let only_host = open(&[RUNTIME]).unwrap();
    assert_eq!((only_host.slices.len(), only_host.gpu.work.len()), (2, 0));
    let old = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, shortName INTEGER);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (2500,4500,0,7,7,4),(2500,'x',0,7,7,4),(9,-5,0,7,7,4),(NULL,3,0,7,7,4);";
    let old = open(&[STRINGS, RUNTIME, old]).unwrap();
    assert_eq!(old.names.text(old.gpu.work.get(2).name), "gemm");
    assert_eq!((old.gpu.work.len(), old.gpu.clock.linked), (3, 3), "work of a file with one process is that process's");
    assert!(old.notes_said()[0].starts_with("3 rows with invalid times"), "{:?}", old.notes_said());
    let empty = open(&["CREATE TABLE NVTX_EVENTS (start INTEGER);"]).unwrap();
    assert_eq!(empty.notes_said(), ["The file holds no events."]);
}

#[test]
fn other_databases_are_recognised() {
    let error =
        open(&["CREATE TABLE cookies (a); CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start;"]).unwrap_err().to_string();
    assert!(error.contains("not of Nsight Systems (it has cookies)") && error.contains("nsys export"), "{error}");
}

#[test]
fn changed_bytes_never_panic_or_hang() {
    let folder = TemporaryFolder::new("nsys-damage");
    let path = folder.path().join("r.sqlite");
    write(&path, &[STRINGS, RUNTIME, KERNEL, MEMCPY, REST]);
    let whole = std::fs::read(&path).unwrap();
    let mut random = Random(0x5eed_1234_5678_9abe);
    let mut opened = 0;
    for case in 0..1500 {
        let mut bytes = whole.clone();
        match case % 4 {
            0 => bytes.truncate(random.below(bytes.len())),
            1 => random.damage(&mut bytes),
            // Damage where the pages are: most of the file is empty.
            _ => {
                let used: Vec<usize> = (16..bytes.len()).filter(|at| bytes[*at] != 0).collect();
                (0..1 + random.below(8)).for_each(|_| bytes[used[random.below(used.len())]] = random.below(256) as u8);
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(timeline) = timeline::open(&path) {
            crate::support::touch(&timeline);
            opened += 1;
        }
    }
    assert!(opened > 100, "{opened} opened");
}
