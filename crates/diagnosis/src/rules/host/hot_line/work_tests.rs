//! What is the work itself, and promises no gain: operators, and what the calls of models hold.

use super::*;
use crate::testing::found;

/// Small operators keep the GIL: they are the model all the same, and nothing shows that they could be saved. What Python itself does could.
#[test]
fn operators_promise_nothing_whoever_has_the_gil() {
    let steps = |above: &str| {
        format!(
            "track main\n repeat 40 every 50ms\n step r 0..40ms\n samples 0..20ms every 2ms active gil serve>score:20{above}\n \
             samples 20ms..40ms every 2ms active gil serve>decode:90\n end"
        )
    };
    let promises = |above: &str| {
        let found = found(&HotLine, &steps(above));
        found.iter().find(|one| one.place.function.as_deref() == Some("score")).unwrap().gain.is_some()
    };
    let torch = "/usr/lib/python3.12/site-packages/torch";
    assert!(promises(""));
    assert!(promises(">PyDict_GetItem@/usr/lib/libpython3.12.so.1.0:0"));
    assert!(!promises(&format!(">at::native::linear@{torch}/lib/libtorch_cpu.so:0")));
    assert!(promises(&format!(
        ">torch::utils::recursive_store@{torch}/lib/libtorch_python.so:0>isinstance@{torch}/lib/libtorch_python.so:0"
    )));
    assert!(!promises(&format!(
        ">Linear.forward@{torch}/nn/modules/linear.py:9>PyDict_GetItem@/usr/lib/libpython3.12.so.1.0:0"
    )));
}

/// What is nearly everything is the work itself, unless the steps are seen to call their model elsewhere.
#[test]
fn what_lies_beside_the_calls_of_models_is_not_the_work() {
    let gain = |entry: &str| {
        let text = format!(
            "track main\n repeat 40 every 50ms\n step r 0..40ms\n {entry}\n \
             samples 0..36ms every 2ms active gil serve>encode:20\n samples 36ms..40ms every 2ms active gil serve>forward:80\n end"
        );
        let found = found(&HotLine, &text);
        assert_eq!(found[0].place.function.as_deref(), Some("encode"));
        found[0].gain.map(|gain| gain.mid)
    };
    assert!(gain("entry model~Net 36ms..40ms").is_some_and(|mid| mid > 80.0));
    assert_eq!(gain(""), None);
    assert_eq!(gain("entry model~Net 0..40ms"), None);
    assert_eq!(gain("entry request 36ms..40ms"), None);
}

/// The program calls a library's model: its line has the Python of all layers. One function that has most of it could be called less; outside the model so could all.
#[test]
fn what_is_spread_thin_over_a_librarys_model_promises_nothing() {
    let library = "/usr/lib/python3.12/site-packages/transformers/bert.py";
    let promises = |functions: [&str; 4], entry: &str| {
        let sample = |(at, function): (usize, &&str)| {
            format!("sample {}ms active gil serve>score:20>{function}@{library}:7\n", 2 + 4 * at)
        };
        let samples: String = functions.iter().enumerate().map(sample).collect();
        let text = format!(
            "track main\n repeat 40 every 50ms\n step r 0..40ms\n {entry}\n {samples} samples 20ms..40ms every 4ms active gil serve>decode:90\n end"
        );
        let found = found(&HotLine, &text);
        found.iter().find(|one| one.place.function.as_deref() == Some("score")).unwrap().gain.is_some()
    };
    let thin = ["embed", "attend", "norm", "project"];
    assert!(!promises(thin, "entry model~Bert 0..18ms"));
    assert!(promises(thin, "entry model~Bert 30ms..32ms"));
    assert!(promises(thin, ""));
    assert!(promises(["mask", "mask", "mask", "project"], "entry model~Bert 0..18ms"));
}

/// Taking from a queue wakes the other thread: that is not what the function that takes does. Between processes objects are copied, which is.
#[test]
fn what_passes_things_between_threads_is_not_blamed_on_who_takes_them() {
    let blamed_on = |function: &str, taken: &str| {
        let text = format!(
            "track main\n repeat 40 every 50ms\n step r 0..40ms\n samples 0..20ms every 2ms active gil serve>take:20>{taken}\n \
             samples 20ms..40ms every 2ms active gil serve>decode:90\n end"
        );
        let found = found(&HotLine, &text);
        found.iter().any(|one| one.place.function.as_deref() == Some(function))
    };
    let blamed = |taken: &str| blamed_on("take", taken);
    let std = "/usr/lib/python3.12";
    assert!(!blamed(&format!(
        "Queue.get@{std}/queue.py:180>Condition.notify@{std}/threading.py:382>sem_post@libc.so.6:0"
    )));
    assert!(blamed(&format!("Condition.notify@{std}/threading.py:382")));
    assert!(blamed(&format!("Queue.get@{std}/multiprocessing/queues.py:103>loads@libpython3.12.so:0")));
    assert!(blamed_on("_get", &format!("Queue.get@{std}/queue.py:180>_get@/srv/my_queue.py:3")));
}
