//! The sample folder that is part of the program: `sample/` of this crate, embedded when it is built.

include!(concat!(env!("OUT_DIR"), "/sample.rs"));

/// The files below a folder of the sample, with their paths from there, sorted.
pub(super) fn files(below: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> + use<'_> {
    FILES.iter().filter_map(move |(path, text)| {
        let path = match below {
            "" => path,
            below => path.strip_prefix(below)?.strip_prefix('/')?,
        };
        Some((path, *text))
    })
}
