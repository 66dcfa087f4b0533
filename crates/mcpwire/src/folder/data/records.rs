//! The records of a category: the file as it is, and where each record lies in it.
//!
//! Records are not parsed until they are looked at, so that a large file costs little more than its own size.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use ring::digest;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::field::field;
use crate::folder::flaw::Flaw;

/// How many indexes of fields are kept.
const INDEXES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);
/// How many answers are kept: the numbers of the records that were found.
const ANSWERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// How many numbers all kept answers hold together: 16 MB.
const MOST_NUMBERS: usize = 4 << 20;

/// How a file of records is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A JSON array.
    Json,
    /// A JSON object a line.
    Lines,
    /// Comma-separated values below a line of names.
    Csv,
}

/// What the cells of a column are; texts, if nothing else is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellType {
    Text,
    Number,
    Boolean,
    /// Members with a semicolon between them.
    List,
}

#[derive(Debug)]
pub(super) struct Records {
    text: String,
    /// Where each record begins and ends.
    spans: Vec<(usize, usize)>,
    /// The columns of CSV.
    columns: Vec<(String, CellType)>,
    /// Tells the content apart from any other.
    pub(super) hash: String,
    indexes: Mutex<LruCache<String, Arc<FieldIndex>>>,
    answers: Mutex<LruCache<String, Arc<Vec<u32>>>>,
}

impl Records {
    pub(super) fn empty() -> Records {
        Records::new(String::new(), Vec::new(), Vec::new())
    }

    /// Finds the records in a file.
    pub(super) fn read(text: String, form: Form, cell: impl Fn(&str) -> CellType) -> Result<Records, Flaw> {
        match form {
            Form::Json => {
                let spans = {
                    let all: Vec<&RawValue> = serde_json::from_str(&text).map_err(|e| Flaw::json(&e))?;
                    all.iter().map(|raw| object_at(&text, raw.get())).collect::<Result<_, _>>()?
                };
                Ok(Records::new(text, spans, Vec::new()))
            }
            Form::Lines => {
                let mut spans = Vec::new();
                for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                    let raw: &RawValue =
                        serde_json::from_str(line).map_err(|e| Flaw { line: Some(number + 1), ..Flaw::json(&e) })?;
                    spans.push(object_at(&text, raw.get())?);
                }
                Ok(Records::new(text, spans, Vec::new()))
            }
            Form::Csv => {
                let (columns, spans) = read_csv(&text, cell)?;
                Ok(Records::new(text, spans, columns))
            }
        }
    }

    fn new(text: String, mut spans: Vec<(usize, usize)>, columns: Vec<(String, CellType)>) -> Records {
        spans.shrink_to_fit();
        let digest = digest::digest(&digest::SHA256, text.as_bytes());
        let hash = digest.as_ref().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let (indexes, answers) = (Mutex::new(LruCache::new(INDEXES)), Mutex::new(LruCache::new(ANSWERS)));
        Records { text, spans, columns, hash, indexes, answers }
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The JSON text of a record.
    pub(super) fn text(&self, at: usize) -> Cow<'_, str> {
        let (start, end) = self.spans[at];
        let text = &self.text[start..end];
        if self.columns.is_empty() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(Value::Object(self.row(text)).to_string())
        }
    }

    pub(super) fn record(&self, at: usize) -> Map<String, Value> {
        let (start, end) = self.spans[at];
        let text = &self.text[start..end];
        // What lies there was read as an object before.
        if self.columns.is_empty() { serde_json::from_str(text).unwrap_or_default() } else { self.row(text) }
    }

    pub(super) fn field(&self, at: usize, name: &str) -> Option<Value> {
        if self.columns.is_empty() { field(&self.text(at), name) } else { self.record(at).remove(name) }
    }

    /// The line of the file that a record begins in.
    pub(super) fn line(&self, at: usize) -> usize {
        self.text[..self.spans[at].0].matches('\n').count() + 1
    }

    fn row(&self, text: &str) -> Map<String, Value> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let Some(Ok(cells)) = reader.records().next() else { return Map::new() };
        let filled = self.columns.iter().zip(&cells).filter(|(_, cell)| !cell.is_empty());
        filled.map(|((name, kind), cell)| (name.clone(), kind.value(cell))).collect()
    }

    /// An answer, by the numbers of its records: kept under its key, or made now. It holds as long as the content is the same.
    pub(super) fn answer(&self, key: String, make: impl FnOnce() -> Vec<u32>) -> Arc<Vec<u32>> {
        if let Some(known) = lock(&self.answers).get(&key) {
            return Arc::clone(known);
        }
        let found = Arc::new(make());
        let mut answers = lock(&self.answers);
        answers.put(key, Arc::clone(&found));
        while answers.iter().map(|(_, numbers)| numbers.len()).sum::<usize>() > MOST_NUMBERS {
            answers.pop_lru();
        }
        found
    }

    /// The records that pass a test. Where a field and its value are known, only records that may have it are tried.
    pub(super) fn select(&self, hint: Option<(&str, &Value)>, test: impl Fn(&Map<String, Value>) -> bool) -> Vec<u32> {
        let passes = |at: &u32| test(&self.record(*at as usize));
        match hint.and_then(|(name, value)| self.candidates(name, value)) {
            Some(candidates) => candidates.into_iter().filter(passes).collect(),
            None => (0..self.len() as u32).filter(passes).collect(),
        }
    }

    /// The records whose field has this text, or holds it; a number is as good as its text.
    pub(super) fn with_text(&self, name: &str, text: &str) -> Vec<u32> {
        let has = |value: &Value| match value {
            Value::Array(members) => members.iter().any(|member| plain_text(member).as_deref() == Some(text)),
            value => plain_text(value).as_deref() == Some(text),
        };
        let passes = |at: &u32| self.field(*at as usize, name).is_some_and(|value| has(&value));
        let number = serde_json::from_str::<Value>(text).ok().filter(Value::is_number);
        let values = [Some(Value::from(text)), number];
        let found: Option<Vec<Vec<u32>>> = values.iter().flatten().map(|value| self.candidates(name, value)).collect();
        match found {
            Some(candidates) => candidates.into_iter().flatten().filter(passes).collect(),
            None => (0..self.len() as u32).filter(passes).collect(),
        }
    }

    /// The records whose field may have this value, or hold it; `None` if an index is of no use.
    fn candidates(&self, name: &str, value: &Value) -> Option<Vec<u32>> {
        const WORTH_IT: usize = 64;
        let wanted = fingerprint(value)?;
        if self.len() < WORTH_IT {
            return None;
        }
        let known = lock(&self.indexes).get(name).cloned();
        let index = known.unwrap_or_else(|| {
            let index = Arc::new(FieldIndex::new(self, name));
            lock(&self.indexes).put(name.to_owned(), Arc::clone(&index));
            index
        });
        Some(index.find(wanted))
    }
}

/// A text, or the text of a number.
pub(super) fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where an object that was borrowed from the text lies in it.
fn object_at(text: &str, part: &str) -> Result<(usize, usize), Flaw> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    if !part.starts_with('{') {
        let line = text[..start].matches('\n').count() + 1;
        return Err(Flaw::at(line, "expected an object as record"));
    }
    Ok((start, start + part.len()))
}

type Columns = Vec<(String, CellType)>;

fn read_csv(text: &str, cell: impl Fn(&str) -> CellType) -> Result<(Columns, Vec<(usize, usize)>), Flaw> {
    let flaw = |e: &csv::Error| Flaw { line: e.position().map(|p| p.line() as usize), reason: "bad CSV".into() };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| flaw(&e))?.clone();
    let names = header.iter().map(|name| name.trim().trim_start_matches('\u{feff}').to_owned());
    let columns: Columns = names.map(|name| (name.clone(), cell(&name))).collect();
    let mut spans = Vec::new();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|e| flaw(&e))? {
        let start = record.position().map_or(0, |position| position.byte() as usize);
        let line = record.position().map_or(0, |position| position.line() as usize);
        if record.len() > columns.len() {
            return Err(Flaw::at(line, format!("expected {} cells, came {}", columns.len(), record.len())));
        }
        spans.push((start, reader.position().byte() as usize));
    }
    Ok((columns, spans))
}

impl CellType {
    fn value(self, cell: &str) -> Value {
        let text = || Value::String(cell.to_owned());
        match self {
            CellType::Text => text(),
            CellType::Number => serde_json::from_str(cell.trim()).ok().filter(Value::is_number).unwrap_or_else(text),
            CellType::Boolean => serde_json::from_str(cell.trim()).ok().filter(Value::is_boolean).unwrap_or_else(text),
            CellType::List => cell.split(';').map(|member| Value::from(member.trim())).collect(),
        }
    }
}

/// Which records have which value in a field, by fingerprints; equal values have equal ones.
#[derive(Debug)]
struct FieldIndex(Vec<(u64, u32)>);

impl FieldIndex {
    fn new(records: &Records, name: &str) -> FieldIndex {
        let mut entries = Vec::with_capacity(records.len());
        for at in 0..records.len() {
            match records.field(at, name) {
                Some(Value::Array(members)) => {
                    entries.extend(members.iter().filter_map(fingerprint).map(|print| (print, at as u32)));
                }
                Some(value) => entries.extend(fingerprint(&value).map(|print| (print, at as u32))),
                None => {}
            }
        }
        entries.sort_unstable();
        entries.dedup();
        entries.shrink_to_fit();
        FieldIndex(entries)
    }

    fn find(&self, print: u64) -> Vec<u32> {
        let start = self.0.partition_point(|(known, _)| *known < print);
        self.0[start..].iter().take_while(|(known, _)| *known == print).map(|(_, at)| *at).collect()
    }
}

/// A number for a plain value; lists and objects have none.
fn fingerprint(value: &Value) -> Option<u64> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    match value {
        Value::Null => 0_u8.hash(&mut hasher),
        Value::Bool(value) => (1_u8, value).hash(&mut hasher),
        // Two numbers that are equal are so as floats, too.
        Value::Number(number) => (2_u8, (number.as_f64()? + 0.0).to_bits()).hash(&mut hasher),
        Value::String(text) => (3_u8, text).hash(&mut hasher),
        Value::Array(_) | Value::Object(_) => return None,
    }
    Some(hasher.finish())
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
