//! The operators that a hot function runs on the CPU, from the steps in which operators were recorded, and what to do about what leads among
//! them: a call of a model is already one batch, and how to make it faster depends on its operators.

use super::{MAX_BUSY_CORES, MAX_SMALL_OPERATOR, MIN_SMALL_OPERATORS};
use crate::finding::Evidence;
use crate::measures::free_cores;
use crate::measures::operators::outer_line;
use crate::rule::Case;
use analysis::host::step_samples::StepSample;
use analysis::phrase;
use analysis::step_operators::Family;
use analysis::{OperatorRow, StepOperators};
use std::collections::{HashMap, HashSet};

/// As many as somebody reads under a finding.
const SHOWN_ROWS: usize = 3;

pub struct HotOperators {
    /// Places in the table, most time first.
    rows: Vec<usize>,
    /// Their own time in a step.
    ns: u64,
}

impl HotOperators {
    /// Where more than half of the samples that fit stand at lines that run operators. None: they do not, or none were recorded.
    pub fn find(case: &Case, fits: impl Fn(&StepSample) -> bool) -> Option<HotOperators> {
        let table = case.operators()?;
        let mut lines: HashMap<(&str, u32), Vec<usize>> = HashMap::new();
        for (place, row) in table.rows.iter().enumerate() {
            let file = row.place.file.as_deref().unwrap_or("");
            lines.entry((file, row.place.line.unwrap_or(0))).or_default().push(place);
        }
        let (mut at_lines, mut all) = (0u64, 0u64);
        let mut hit: HashSet<usize> = HashSet::new();
        for one in case.samples.all.iter().filter(|one| fits(one)) {
            all += 1;
            let Some(line) = outer_line(case, case.sample(one).stack) else { continue };
            let frame = case.timeline.stacks.frame(line);
            if let Some(rows) = lines.get(&(&*case.timeline.names.get(frame.name).file, frame.line)) {
                at_lines += 1;
                hit.extend(rows);
            }
        }
        let mut rows: Vec<usize> = hit.into_iter().collect();
        rows.sort_unstable();
        let ns = rows.iter().map(|row| table.rows[*row].ns).fold(0, u64::saturating_add);
        (at_lines * 2 > all && ns > 0).then_some(HotOperators { rows, ns })
    }

    fn rows<'a>(&self, table: &'a StepOperators) -> impl Iterator<Item = &'a OperatorRow> {
        self.rows.iter().filter_map(|row| table.rows.get(*row))
    }

    pub fn evidence(&self, case: &Case) -> Vec<Evidence> {
        let Some(table) = case.operators() else { return Vec::new() };
        let row = |row: &OperatorRow| {
            let share = row.ns as f64 / self.ns as f64;
            let speed = row.gflops().map_or(String::new(), |speed| format!(", {speed:.1} GFLOP/s"));
            let module = row.module.as_ref().map_or(String::new(), |module| format!(" in {module}"));
            let part = phrase::percent(share);
            let text = format!("{}{module}: {part} of its operators' time, {}{speed}", named(case, row), often(row));
            Evidence::new(text).number("share", share).number("ns", row.ns as f64)
        };
        self.rows(table).take(SHOWN_ROWS).map(row).collect()
    }

    /// Empty: what leads has no advice of its own.
    pub fn actions(&self, case: &Case) -> Vec<String> {
        let Some(table) = case.operators() else { return Vec::new() };
        let mut families: HashMap<Family, u64> = HashMap::new();
        self.rows(table).for_each(|row| *families.entry(row.family).or_default() += row.ns);
        let calls: f64 = self.rows(table).map(|row| row.calls).sum();
        let each = (self.ns as f64 / calls.max(1.0)) as u64;
        if calls >= case.threshold(MIN_SMALL_OPERATORS) && (each as f64) < case.threshold(MAX_SMALL_OPERATOR) {
            let (calls, each) = (phrase::count(calls as u64), phrase::duration(each));
            return vec![format!(
                "Run fewer operators: {calls} per step take {each} each, most of it PyTorch's own cost per call. Use a larger batch or torch.compile(model)."
            )];
        }
        let Some((family, _)) = families.into_iter().max_by_key(|(family, ns)| (*ns, *family)) else {
            return Vec::new();
        };
        let Some(first) = self.rows(table).find(|row| row.family == family) else { return Vec::new() };
        let mut actions = of_family(case, family, first, &self.names(case, table, family));
        actions.extend(more_threads(case).filter(|_| !actions.is_empty()));
        actions
    }

    /// "softmax, add and 2 more", of a family.
    fn names(&self, case: &Case, table: &StepOperators, family: Family) -> String {
        let those = self.rows(table).filter(|row| row.family == family).map(|row| row.name);
        crate::measures::operators::names(case, those)
    }
}

/// "`addmm [768, 256] [256, 1024] float32`": as one piece of code, so that no report breaks it.
fn named(case: &Case, row: &OperatorRow) -> String {
    let parts = [row.plain_name(case.timeline), &row.shapes, row.dtype];
    format!("`{}`", parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
}

fn often(row: &OperatorRow) -> String {
    let each = phrase::duration(row.mean_ns());
    match row.calls {
        calls if calls <= 1.0 => format!("{each} per call"),
        calls => format!("{} calls per step, {each} each", phrase::count(calls.round() as u64)),
    }
}

fn of_family(case: &Case, family: Family, first: &OperatorRow, names: &str) -> Vec<String> {
    let leads = named(case, first);
    match family {
        Family::Product | Family::Attention => vec![
            match first.dtype {
                "float64" => {
                    format!("Use float32 in {names}, float64 is at most half as fast: {leads} is the largest of them.")
                }
                "float32" => format!(
                    "Run {names} in bfloat16 (`with torch.autocast(\"cpu\", dtype=torch.bfloat16)`) if the CPU has AMX or AVX-512 BF16 (see `lscpu`): {leads} is the largest of them."
                ),
                _ => format!("Quantise the weights to int8, or use a smaller model: {leads} is the largest of them."),
            },
            "Try torch.compile(model): it packs weights once and fuses what follows a product into it.".into(),
        ],
        Family::Lookup => vec![format!(
            "Read less memory in {names}: a narrower table (bfloat16, int8), fewer or sorted indices, nn.EmbeddingBag in place of a lookup and a sum. {leads} is the largest of them."
        )],
        Family::Elementwise => vec![format!(
            "Fuse {names} with torch.compile(model): each reads and writes all of its data for little arithmetic. {leads} is the largest of them."
        )],
        Family::Window => vec![format!(
            "Use channels_last in {names} (model.to(memory_format=torch.channels_last), and the input): windows are then read in the order of memory. {leads} is the largest of them."
        )],
        Family::Copy => vec![format!(
            "Avoid the copies of {names}: preallocate instead of concatenating, and keep one layout and one dtype through the model. {leads} is the largest of them."
        )],
        Family::Other => Vec::new(),
    }
}

/// Where most cores have nothing to do while a step runs, and its threads get those that they ask for.
fn more_threads(case: &Case) -> Option<String> {
    let cores = free_cores::find(case)?;
    let (all, busy) = (cores.all, cores.busy);
    (cores.gets_them() && busy < case.threshold(MAX_BUSY_CORES) * all as f64).then(|| {
        format!("Use more threads: {busy:.1} of {all} cores are busy in the steps. Check torch.get_num_threads() and OMP_NUM_THREADS.")
    })
}

#[cfg(test)]
mod tests {
    use crate::rules::host::hot_line::HotLine;
    use crate::testing::found;

    /// A model that runs in native code at line 80, in steps of 10 ms; the operators of the two that were looked at, each with its time.
    fn model(ops: &[(&str, u64, &str)]) -> String {
        let mut text = String::from(
            "track main\n repeat 40 every 10ms\n step r 0..10ms\n samples 0..9ms every 1ms active serve:4>forward:80>linear@/x/site-packages/torch/nn/functional.py:9\n sample 9500us active gil serve:5\n end\n step r 500ms..520ms\n step r 520ms..540ms\n",
        );
        for (turn, base) in [(0, 500_000), (1, 520_000)] {
            let mut at = base;
            for (name, us, more) in ops {
                text += &format!(
                    "op aten::{name} {at}us..{}us args {{\"Input~Dims\":[[8,64],[64,64]],\"Input~type\":[\"float\",\"float\"],\"Concrete~Inputs\":[],{more}\"device\":\"cpu\",\"in\":[1],\"out\":[2],\"at\":\"app.py:80~forward\",\"module\":\"fc\",\"turn\":[0,{turn}]}}\n",
                    at + us
                );
                at += us;
            }
        }
        text
    }

    const FLOAT: &str = "\"Output~type\":[\"float\"],";

    fn said(ops: &[(&str, u64, &str)]) -> (Vec<String>, String) {
        let found = &found(&HotLine, &model(ops))[0];
        assert!(found.title.starts_with("forward takes "), "{}", found.title);
        let evidence =
            found.evidence.iter().map(|one| one.text.clone()).filter(|text| text.contains("operators' time"));
        let actions: Vec<&str> = found.actions.iter().map(|action| action.text()).collect();
        (evidence.collect(), actions.join(" "))
    }

    #[test]
    fn a_call_of_a_model_is_answered_by_what_leads_in_it() {
        let (evidence, actions) = said(&[("addmm", 6000, FLOAT), ("gelu", 2000, FLOAT)]);
        assert_eq!(
            evidence[0],
            "`addmm [8, 64] [64, 64] float32` in fc: 75 % of its operators' time, 6.00 ms per call"
        );
        assert!(evidence[1].starts_with("`gelu [8, 64] [64, 64] float32` in fc: 25 %"), "{evidence:?}");
        assert!(actions.contains("Run addmm in bfloat16") && actions.contains("torch.compile"), "{actions}");
        assert!(!actions.contains("Batch more"), "it is a batch already: {actions}");
        for (op, output, advice) in [
            ("embedding", FLOAT, "Read less memory in embedding"),
            ("_softmax", FLOAT, "Fuse _softmax and gelu with torch.compile(model)"),
            ("max_pool2d", FLOAT, "Use channels_last in max_pool2d"),
            ("cat", FLOAT, "Avoid the copies of cat"),
            ("addmm", "\"Output~type\":[\"double\"],", "Use float32"),
            ("addmm", "\"Output~type\":[\"c10::BFloat16\"],", "Quantise the weights"),
        ] {
            let (_, actions) = said(&[(op, 6000, output), ("gelu", 100, FLOAT)]);
            assert!(actions.contains(advice), "{op}: {actions}");
        }
    }

    /// Eight cores, of which the steps use one, or wait for it.
    #[test]
    fn more_threads_only_where_cores_are_free() {
        let with = |waits: &str| {
            let text = model(&[("addmm", 6000, FLOAT)]).replacen(
                "track main\n",
                &format!("host cpus 8\n track main\n counter cpu_ns 0..600ms every 20ms grows 20ms\n counter runqueue_wait_ns 0..600ms every 20ms grows {waits}\n"),
                1,
            );
            let found = &found(&HotLine, &text)[0];
            found.actions.iter().any(|action| action.text().starts_with("Use more threads: 1.0 of 8 cores"))
        };
        assert!(with("10us") && !with("15ms"));
    }

    #[test]
    fn many_small_operators_are_too_many() {
        let (_, actions) = said(&[("addmm", 10, FLOAT); 100]);
        assert!(actions.starts_with("Run fewer operators: 100 per step take 10.0 µs each"), "{actions}");
    }

    #[test]
    fn operators_of_other_lines_and_unknown_ones_leave_the_advice_as_it_is() {
        let (evidence, actions) = said(&[("quantum_leap", 6000, FLOAT)]);
        assert!(evidence.len() == 1 && actions.contains("Batch more work per call of forward"), "{actions}");
        let elsewhere = model(&[("addmm", 6000, FLOAT)]).replace("app.py:80~forward", "app.py:7~load");
        let found = &found(&HotLine, &elsewhere)[0];
        assert!(found.actions[0].contains("Batch more work per call of forward"), "{:?}", found.actions);
    }
}
