//! The fixes that `inferscope verify` can switch on without an edit of the program: what each changes, its risk, and how it is switched.
//! Which fix answers a rule is said by the rule. What happens inside the process is in the Python package (`_fixes/`); the names are the
//! same there.

use crate::RuleCode;
use crate::rules::RULES;

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
pub struct ChosenFix {
    pub fix: &'static Fix,
    /// The rule, where it was asked for by that.
    pub rule: Option<RuleCode>,
    pub value: Option<String>,
}

impl ChosenFix {
    /// The rules that may predict what it gains.
    pub fn rules(&self) -> Vec<RuleCode> {
        self.rule.map_or_else(|| self.fix.rules(), |rule| vec![rule])
    }

    /// The fix as a person would name it again.
    pub fn title(&self) -> String {
        match (&self.value, self.fix.value) {
            (Some(value), Value::Threads | Value::Cpus) => format!("{}={value}", self.fix.name),
            _ => self.fix.name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fix_that_a_rule_names_is_there() {
        let named: Vec<&str> = RULES.iter().filter_map(|rule| rule.fix()).collect();
        for name in &named {
            assert!(FIXES.iter().any(|fix| fix.name == *name), "{name}");
        }
        assert!(named.len() > 10, "{named:?}");
        let tf32 = FIXES.iter().find(|fix| fix.name == "tf32").unwrap();
        assert_eq!(tf32.rules()[0], "tf32-off");
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
