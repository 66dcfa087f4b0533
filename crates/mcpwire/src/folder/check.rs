//! The report of `mcpwire check`: what is served, and what is wrong.

use std::fmt;

use serde_json::{Value, json};

use super::catalog::Catalog;
use super::data::{self, Finding};
use super::flaw::Warning;

/// What a folder holds, and everything that is wrong with it.
#[derive(Debug)]
pub struct Report {
    prompts: usize,
    resources: usize,
    fragments: usize,
    skipped: Vec<Warning>,
    data: Vec<Finding>,
}

pub(super) fn check(catalog: &Catalog) -> Report {
    Report {
        prompts: catalog.prompts.len(),
        resources: catalog.resources.len(),
        fragments: catalog.index.fragments().len(),
        skipped: catalog.warnings.clone(),
        data: data::check(catalog),
    }
}

impl Report {
    /// Whether nothing is wrong.
    pub fn passes(&self) -> bool {
        self.skipped.is_empty() && self.data.iter().all(|finding| finding.faults.is_empty())
    }

    /// The report for programs.
    pub fn to_json(&self) -> Value {
        let fault = |warning: &Warning| json!({ "file": warning.file, "line": warning.line, "reason": warning.reason });
        let faults = |warnings: &[Warning]| -> Vec<Value> { warnings.iter().map(fault).collect() };
        let categories = self.data.iter().map(|finding| {
            let status = if finding.faults.is_empty() { "pass" } else { "fail" };
            json!({
                "category": finding.category, "records": finding.records, "status": status,
                "faults": faults(&finding.faults),
            })
        });
        json!({
            "prompts": self.prompts,
            "resources": self.resources,
            "fragments": self.fragments,
            "skipped": faults(&self.skipped),
            "data": categories.collect::<Vec<_>>(),
            "status": if self.passes() { "pass" } else { "fail" },
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for warning in self.skipped.iter().chain(self.data.iter().flat_map(|finding| &finding.faults)) {
            writeln!(f, "{warning}")?;
        }
        writeln!(f, "{} prompts, {} resources ({} can be matched)", self.prompts, self.resources, self.fragments)?;
        for finding in &self.data {
            let status = if finding.faults.is_empty() { "pass" } else { "fail" };
            writeln!(f, "{}: {} records: {status}", finding.category, finding.records)?;
        }
        write!(f, "{}", if self.passes() { "pass" } else { "fail" })
    }
}
