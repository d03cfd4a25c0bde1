//! Files of other tools: torch.profiler JSON plain, packed and as a folder of ranks, InferScope JSON, Nsight Systems SQLite, memory snapshots of
//! PyTorch.

use crate::words::{CALLS, HOST, KERNELS};
use crate::{events, through};
use flate2::{Compression, write::GzEncoder};
use fuzz::{NUMBERS, Random, fuzz};
use rusqlite::Connection;
use std::io::Write;
use std::path::Path;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("packed");
    encoder.finish().expect("packed")
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("the input is written");
}

#[test]
fn torch_profiler() {
    let make = |random: &mut Random, path: &Path| {
        let mut text = events::kineto(random);
        if random.one_in(2) {
            random.json(&mut text);
        }
        write(path, &text);
    };
    fuzz("torch", 250, make, through::open);
}

#[test]
fn torch_profiler_packed_and_several_ranks() {
    let make = |random: &mut Random, path: &Path| {
        let mut text = events::kineto(random);
        if random.one_in(3) {
            random.json(&mut text);
        }
        let mut packed = gzip(&text);
        if random.one_in(3) {
            random.bytes(&mut packed);
        }
        if random.one_in(2) {
            return write(path, &packed);
        }
        std::fs::create_dir_all(path).expect("a folder");
        let other = events::kineto(random);
        write(&path.join("rank0.json.gz"), &packed);
        write(&path.join(random.pick(&["rank1.json", "rank0.json", "a.pt.trace.json", "b.txt"])), &other);
    };
    fuzz("packed", 150, make, through::open);
}

#[test]
fn inferscope_json() {
    let make = |random: &mut Random, path: &Path| {
        let mut text = events::inferscope_json(random);
        if random.one_in(2) {
            random.json(&mut text);
        }
        write(path, &if random.one_in(8) { gzip(&text) } else { text });
    };
    fuzz("inferscope-json", 250, make, through::open);
}

/// Tables of an export with the columns that are read.
const TABLES: [(&str, &str); 11] = [
    ("StringIds", "id,value"),
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "start,end,globalTid,correlationId,nameId,returnValue"),
    (
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "start,end,deviceId,contextId,streamId,correlationId,globalPid,demangledName,shortName,registersPerThread,gridX,gridY,\
         gridZ,blockX,blockY,blockZ,staticSharedMemory,dynamicSharedMemory,graphNodeId",
    ),
    (
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        "start,end,deviceId,contextId,streamId,correlationId,globalPid,bytes,copyKind,srcKind,dstKind",
    ),
    ("CUPTI_ACTIVITY_KIND_MEMSET", "start,end,deviceId,contextId,streamId,correlationId,globalPid,bytes,memKind"),
    ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "start,end,deviceId,contextId,streamId,correlationId,globalPid,syncType"),
    ("NVTX_EVENTS", "start,end,eventType,text,globalTid,textId,domainId,rangeId,endGlobalTid"),
    ("PROCESSES", "globalPid,pid,name"),
    ("ThreadNames", "nameId,globalTid"),
    ("TARGET_INFO_GPU", "id,name,uuid,smCount,totalMemory,memoryBandwidth"),
    ("TARGET_INFO_CUDA_DEVICE", "gpuId,cudaId,pid"),
];

fn sql_value(random: &mut Random, column: &str) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match column {
        _ if random.one_in(25) => ["NULL", "'x'", "x'00ff'", "''"][random.below(4)].to_owned(),
        _ if random.one_in(25) => {
            let number = random.pick(&NUMBERS);
            if number.parse::<f64>().is_ok_and(f64::is_finite) { number.to_owned() } else { "'x'".to_owned() }
        }
        "value" | "text" | "name" | "uuid" => match random.below(3) {
            0 => quote(random.pick(&KERNELS)),
            1 => quote(random.pick(&CALLS)),
            _ => quote(random.pick(&HOST)),
        },
        "start" | "end" => random.below(3000).to_string(),
        "globalPid" => "(111 << 24)".to_owned(),
        "globalTid" | "endGlobalTid" => format!("(111 << 24) + {}", random.below(3)),
        "eventType" => random.pick(&["59", "60", "34", "75", "33", "70"]).to_string(),
        _ => random.below(9).to_string(),
    }
}

fn nsys(random: &mut Random, path: &Path) {
    let mut script = String::from("BEGIN;");
    for (table, columns) in TABLES {
        if random.one_in(12) {
            continue;
        }
        let columns: Vec<&str> = columns.split(',').filter(|_| !random.one_in(40)).collect();
        if columns.is_empty() {
            continue;
        }
        script += &format!(
            "CREATE TABLE {table} ({});",
            columns.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(",")
        );
        for _ in 0..random.below(12) {
            let values: Vec<String> = columns.iter().map(|column| sql_value(random, column)).collect();
            script += &format!("INSERT INTO {table} VALUES ({});", values.join(","));
        }
    }
    script += "COMMIT;";
    let _ = std::fs::remove_file(path);
    let database = Connection::open(path).expect("a database");
    database.execute_batch(&script).unwrap_or_else(|error| panic!("{error}: {script}"));
}

#[test]
fn nsight_systems() {
    let make = |random: &mut Random, path: &Path| {
        nsys(random, path);
        if random.one_in(3) {
            let mut bytes = std::fs::read(path).expect("what was written");
            random.bytes(&mut bytes);
            write(path, &bytes);
        }
    };
    fuzz("nsys", 120, make, through::open);
}

#[test]
fn memory_snapshots() {
    let make = |random: &mut Random, path: &Path| {
        let mut bytes = events::snapshot(random).pickle(random.below(6) as u8);
        if random.one_in(2) {
            random.bytes(&mut bytes);
        }
        write(path, &bytes);
    };
    fuzz("snapshot", 250, make, through::open);
}
