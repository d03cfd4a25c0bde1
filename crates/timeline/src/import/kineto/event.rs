//! One event of a Chrome trace as Kineto and PyTorch's profilers before it wrote them: its fields as text, and what sort of
//! thing it is. Categories changed their names over the years; all of them are known here.

use crate::import::json::fields::{Raw, fields};

#[derive(Default)]
pub struct Event<'a> {
    pub phase: Raw<'a>,
    pub category: Raw<'a>,
    pub name: Raw<'a>,
    pub process: Raw<'a>,
    pub thread: Raw<'a>,
    pub time: Raw<'a>,
    pub duration: Raw<'a>,
    pub args: Raw<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sort {
    Op,
    /// `record_function` of the program, or of the profiler.
    Annotation,
    Python,
    Api,
    Kernel,
    Memcpy,
    Memset,
    Sync,
    Overhead,
    Instant,
    Counter,
    /// Names of processes and threads.
    Meta,
    /// Says again what other events say: arrows, annotations repeated on the device, the profiler's own span.
    Repeated,
    /// A phase or a category that we do not know.
    Unknown,
}

impl<'a> Event<'a> {
    pub fn parse(text: &'a str) -> Result<Event<'a>, serde_json::Error> {
        let mut event = Event::default();
        fields(text, |key, value| match key {
            "ph" => event.phase = value,
            "cat" => event.category = value,
            "name" => event.name = value,
            "pid" => event.process = value,
            "tid" => event.thread = value,
            "ts" => event.time = value,
            "dur" => event.duration = value,
            "args" => event.args = value,
            _ => {}
        })?;
        Ok(event)
    }

    pub fn sort(&self) -> Sort {
        match self.phase.0 {
            r#""X""# => self.of_category(),
            r#""M""# => Sort::Meta,
            r#""i""# | r#""I""# => Sort::Instant,
            r#""C""# => Sort::Counter,
            r#""s""# | r#""t""# | r#""f""# => Sort::Repeated,
            _ => Sort::Unknown,
        }
    }

    fn of_category(&self) -> Sort {
        let category = self.category.0.trim_matches('"');
        match category {
            "cpu_op" | "Operator" | "operator" | "hpu_op" | "collective_comm" => Sort::Op,
            "user_annotation" => Sort::Annotation,
            "python_function" => Sort::Python,
            "kernel" | "Kernel" | "concurrent_kernel" | "mtia_ccp_events" => Sort::Kernel,
            "gpu_memcpy" | "Memcpy" | "memcpy" => Sort::Memcpy,
            "gpu_memset" | "Memset" | "memset" => Sort::Memset,
            "cuda_sync" | "gpu_sync" => Sort::Sync,
            "overhead" | "Overhead" => Sort::Overhead,
            "Runtime" | "runtime" => Sort::Api,
            "Trace" | "gpu_user_annotation" | "cuda_profiler_range" | "cuda_event" => Sort::Repeated,
            // The profiler before Kineto had no categories: the process says which it is.
            "" => match self.process.0 {
                r#""CPU functions""# => Sort::Op,
                r#""CUDA functions""# => Sort::Kernel,
                _ => Sort::Unknown,
            },
            // cuda_runtime, cuda_driver, xpu_runtime, hip_runtime, …
            _ if category.ends_with("_runtime") || category.ends_with("_driver") => Sort::Api,
            _ => Sort::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_of_all_ages_are_known() {
        let sort = |category: &str| Event::parse(&format!(r#"{{"ph":"X","cat":"{category}"}}"#)).unwrap().sort();
        for (category, expected) in [
            ("Kernel", Sort::Kernel),
            ("kernel", Sort::Kernel),
            ("Runtime", Sort::Api),
            ("cuda_runtime", Sort::Api),
            ("cuda_driver", Sort::Api),
            ("Operator", Sort::Op),
            ("Memcpy", Sort::Memcpy),
            ("gpu_memset", Sort::Memset),
            ("gpu_user_annotation", Sort::Repeated),
            ("FEE", Sort::Unknown),
        ] {
            assert_eq!(sort(category), expected, "{category}");
        }
        let arrow = Event::parse(r#"{"ph":"s","cat":"async_cpu_to_gpu"}"#).unwrap();
        assert_eq!(arrow.sort(), Sort::Repeated);
        let legacy = Event::parse(r#"{"ph":"X","pid":"CUDA functions"}"#).unwrap();
        assert_eq!(legacy.sort(), Sort::Kernel);
    }
}
