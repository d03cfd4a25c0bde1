//! Work that the data itself shows to be unnecessary, or to have to be as it is: from the operators of the steps that were looked at.

pub(crate) mod batchable_loop;
pub(crate) mod dependent_chain;
pub(crate) mod dtype_churn;
pub(crate) mod growing_concat;
pub(crate) mod per_element_loop;
pub(crate) mod repeated_work;

use crate::rule::Family;

/// In the order of the page.
pub const FAMILY: Family = Family {
    name: "dataflow",
    title: "Data flow",
    summary: "Work that the data shows to be unnecessary: the same result every step, buffers that grow by copying, conversions there and back, rows that could be one batch, elements that are read one by one.",
    is_of_recording: false,
    rules: &[
        &repeated_work::RepeatedWork,
        &growing_concat::GrowingConcat,
        &dtype_churn::DtypeChurn,
        &batchable_loop::BatchableLoop,
        &per_element_loop::PerElementLoop,
        &dependent_chain::DependentChain,
    ],
};
