//! Cases of one test, run side by side; the test tells of each that fails, and how far it got.

use std::fmt::Display;
use std::sync::{Arc, Mutex};

/// How far a case has got.
#[derive(Clone)]
pub struct Place(Arc<Mutex<String>>);

impl Place {
    pub fn at(&self, place: impl Into<String>) {
        *self.0.lock().unwrap() = place.into();
    }
}

/// Runs the cases; all of them must pass.
pub async fn check<C, F>(cases: impl IntoIterator<Item = C>, run: impl Fn(C, Place) -> F)
where
    C: Copy + Display,
    F: Future<Output = ()> + Send + 'static,
{
    let start = |case| {
        let place = Place(Arc::new(Mutex::new("the start".to_owned())));
        (case, place.clone(), tokio::spawn(run(case, place)))
    };
    let mut failures = Vec::new();
    for (case, place, running) in cases.into_iter().map(start).collect::<Vec<_>>() {
        let Err(error) = running.await else { continue };
        let panic = error.into_panic();
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        failures.push(format!("{case}: {}: {text}", place.0.lock().unwrap()));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
