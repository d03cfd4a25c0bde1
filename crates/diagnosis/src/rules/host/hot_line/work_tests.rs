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
