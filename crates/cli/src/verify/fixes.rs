//! The fixes that can be switched without editing a program: what each changes, its risk, and how it is switched. Which fix answers a rule
//! is said by the rule. What happens inside the process is in the Python package (`_fix.py`); the names are the same there.

use super::machine;
use analysis::spelling::nearest_of;
use diagnosis::RuleCode;
use diagnosis::rules::RULES;
use std::ffi::OsString;

pub struct Fix {
    pub name: &'static str,
    /// What is changed, as one would do it by hand.
    pub what: &'static str,
    /// What may become different besides the time.
    pub risk: &'static str,
    pub switch: Switch,
    pub value: Value,
}

/// Who does it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// The package inside the process: without Python there is nobody to do it.
    Process,
    /// Variables that any program may read.
    Environment(&'static [&'static str]),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    None,
    /// A number of threads; by default one a physical core.
    Threads,
    /// A list of CPUs such as `0-7,16`; by default those of the GPU's NUMA node.
    Cpus,
    /// The same for everybody.
    Fixed(&'static str),
}

pub static FIXES: [Fix; 11] = [
    Fix {
        name: "tf32",
        what: "torch.set_float32_matmul_precision(\"high\"): FP32 matrix products and convolutions on TF32 tensor cores",
        risk: "changes numbers: products keep 10 bits of mantissa instead of 23",
        switch: Switch::Process,
        value: Value::None,
    },
    Fix {
        name: "sdpa",
        what: "scaled_dot_product_attention may use the flash, memory-efficient and cuDNN kernels, whatever the program forbids",
        risk: "changes numbers in the last digits; attention written out by hand stays as it is",
        switch: Switch::Process,
        value: Value::None,
    },
    Fix {
        name: "channels-last",
        what: "model.to(memory_format=torch.channels_last) at the first call of every model with a Conv2d",
        risk: "code that calls .view() on the output of a convolution fails: .reshape() or .flatten() there",
        switch: Switch::Process,
        value: Value::None,
    },
    Fix {
        name: "cudnn-benchmark",
        what: "torch.backends.cudnn.benchmark = True: cuDNN tries its algorithms and keeps the fastest",
        risk: "may pick another algorithm from run to run; every new input shape is slow once",
        switch: Switch::Process,
        value: Value::None,
    },
    Fix {
        name: "pinned-copies",
        what: "tensor.pin_memory().to(device, non_blocking=True) for every copy of pageable memory to the GPU",
        risk: "none while one stream is used: it stops when the program makes a second one; batches that are pinned once, \
               not in every step, gain more than is measured here",
        switch: Switch::Process,
        value: Value::None,
    },
    Fix {
        name: "threads",
        what: "thread pools of OpenMP, MKL, OpenBLAS and numexpr of one size: OMP_NUM_THREADS and its like",
        risk: "sums of floats are split otherwise: last digits may change",
        switch: Switch::Environment(&[
            "OMP_NUM_THREADS",
            "MKL_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "NUMEXPR_NUM_THREADS",
            "NUMEXPR_MAX_THREADS",
        ]),
        value: Value::Threads,
    },
    Fix {
        name: "affinity",
        what: "os.sched_setaffinity(0, CPUS) at the start: the process and its children keep to these CPUs",
        risk: "none for results; too few CPUs make the program slower",
        switch: Switch::Process,
        value: Value::Cpus,
    },
    Fix {
        name: "gc-freeze",
        what: "gc.collect(); gc.freeze(); gc.set_threshold(50_000, 50, 100) when the first step begins",
        risk: "cycles among objects that are alive then are never freed",
        switch: Switch::Process,
        value: Value::None,
    },
    Fix {
        name: "expandable-segments",
        what: "PYTORCH_ALLOC_CONF=expandable_segments:True: PyTorch's allocator grows segments instead of making new ones",
        risk: "none for results; memory cannot be shared with other processes by CUDA IPC in older versions",
        switch: Switch::Environment(&["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"]),
        value: Value::Fixed("expandable_segments:True"),
    },
    Fix {
        name: "eager-loading",
        what: "CUDA_MODULE_LOADING=EAGER: all kernels are loaded at the start, none in a step",
        risk: "a slower start and more GPU memory",
        switch: Switch::Environment(&["CUDA_MODULE_LOADING"]),
        value: Value::Fixed("EAGER"),
    },
    Fix {
        name: "launch-queue",
        what: "CUDA_SCALE_LAUNCH_QUEUES=4x: four times as much room for launches that wait",
        risk: "none for results; more GPU memory for the queue",
        switch: Switch::Environment(&["CUDA_SCALE_LAUNCH_QUEUES"]),
        value: Value::Fixed("4x"),
    },
];

impl Fix {
    /// The rules whose findings it answers. The first is the one that speaks of it most directly.
    pub fn rules(&self) -> Vec<RuleCode> {
        RULES.iter().filter(|rule| rule.fix() == Some(self.name)).map(|rule| rule.code()).collect()
    }
}

/// A fix with the value that was asked for, or that this machine suggests.
pub struct Chosen {
    pub fix: &'static Fix,
    /// The rule, where it was asked for by that.
    pub rule: Option<RuleCode>,
    pub value: Option<String>,
}

/// Why there is no such fix.
pub enum Unknown {
    /// The rule is known, but its fix has to be written: what to do.
    Edit(String),
    Word(String),
}

/// Reads `NAME`, `RULE` or either with `=VALUE`.
pub fn choose(word: &str) -> Result<Chosen, Unknown> {
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    let named = |name: &str| FIXES.iter().find(|fix| fix.name == name);
    let rule = RULES.into_iter().find(|rule| rule.code() == name);
    let by_rule = || rule.and_then(|rule| Some((named(rule.fix()?)?, Some(rule.code()))));
    let Some((fix, rule)) = named(name).map(|fix| (fix, None)).or_else(by_rule) else {
        if let Some(rule) = rule {
            return Err(Unknown::Edit(super::edits::edit(rule)));
        }
        let words = FIXES.iter().map(|fix| fix.name).chain(RULES.iter().map(|rule| rule.code().as_str()));
        let near = nearest_of(name, words);
        let hint = near.map_or("`inferscope verify --list` shows all".into(), |near| format!("did you mean {near}?"));
        return Err(Unknown::Word(format!("there is no fix or rule {name:?}: {hint}")));
    };
    let value = machine::value(fix, value).map_err(Unknown::Word)?;
    Ok(Chosen { fix, rule, value })
}

impl Chosen {
    /// What the command gets besides, to have the fix.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> = vec![("INFERSCOPE_FIX".into(), self.fix.name.into())];
        let value = self.value.clone().unwrap_or_default();
        if !value.is_empty() {
            variables.push(("INFERSCOPE_FIX_VALUE".into(), value.clone().into()));
        }
        if let Switch::Environment(names) = self.fix.switch {
            variables.extend(names.iter().map(|name| ((*name).into(), joined(name, &value))));
        }
        variables
    }

    /// The fix as a person would name it again.
    pub fn title(&self) -> String {
        match (&self.value, self.fix.value) {
            (Some(value), Value::Threads | Value::Cpus) => format!("{}={value}", self.fix.name),
            _ => self.fix.name.to_owned(),
        }
    }
}

/// The allocator's options are a list: those that are set already stay.
fn joined(name: &str, value: &str) -> OsString {
    let before = std::env::var(name).ok().filter(|before| name.ends_with("_ALLOC_CONF") && !before.is_empty());
    before.map_or_else(|| value.into(), |before| format!("{before},{value}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(word: &str) -> String {
        match choose(word).err().unwrap() {
            Unknown::Edit(text) | Unknown::Word(text) => text,
        }
    }

    #[test]
    fn by_name_or_by_rule() {
        let chosen = choose("gc-pauses").ok().unwrap();
        assert_eq!((chosen.fix.name, chosen.rule.unwrap().as_str()), ("gc-freeze", "gc-pauses"));
        assert_eq!(choose("tf32").ok().unwrap().rule, None);
        assert_eq!(chosen.environment(), [("INFERSCOPE_FIX".into(), "gc-freeze".into())]);
    }

    #[test]
    fn values_reach_every_variable() {
        let chosen = choose("threads=3").ok().unwrap();
        assert_eq!(chosen.title(), "threads=3");
        assert!(chosen.environment().contains(&("OMP_NUM_THREADS".into(), "3".into())));
        assert!(chosen.environment().contains(&("INFERSCOPE_FIX_VALUE".into(), "3".into())));
    }

    #[test]
    fn a_slip_is_told_and_an_edit_is_named() {
        assert!(refused("gc-freze").contains("did you mean gc-freeze?"), "{}", refused("gc-freze"));
        assert!(
            refused("implicit-sync").contains("needs a code change; verify cannot apply it"),
            "{}",
            refused("implicit-sync")
        );
        assert!(refused("threads=many").contains("threads=4"));
        assert!(refused("tf32=1").contains("takes no value"));
    }

    #[test]
    fn every_fix_that_a_rule_names_is_there() {
        let named: Vec<&str> = RULES.iter().filter_map(|rule| rule.fix()).collect();
        for name in &named {
            assert!(FIXES.iter().any(|fix| fix.name == *name), "{name}");
        }
        assert!(named.len() > 10, "{named:?}");
        assert_eq!(choose("tf32").ok().unwrap().fix.rules()[0], "tf32-off");
    }

    #[test]
    fn names_of_fixes_and_rules_are_each_used_once() {
        let rules = RULES.iter().map(|rule| rule.code().as_str());
        let mut all: Vec<&str> = FIXES.iter().map(|fix| fix.name).chain(rules).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
