//! What servers offered the last time, kept on disk: a file for each server and configuration.
//!
//! Files and not a database, because many of us run at once: a reader sees a whole file or none, and nobody waits for
//! anybody. Whatever is wrong with a file, it is as if it were not there.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::atomic::{self, Lasting};

/// Raised when files of before are of no more use.
const VERSION: u32 = 1;
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// Nobody is still writing a file after this long.
const ABANDONED: Duration = Duration::from_secs(3600);
const LARGEST: u64 = 64 << 20;
const EXTENSION: &str = "json";

/// A folder of catalogues. Neither names nor contents have a part in secrets: the hash is made before those are known.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept<S, V> {
    version: u32,
    server: S,
    config_hash: S,
    /// Seconds since 1970.
    expires: u64,
    catalogue: V,
}

impl Cache {
    /// Nothing is made before something is put.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into() }
    }

    /// What was put for a server with this configuration.
    pub fn get(&self, server: &str, hash: &str) -> Option<Box<RawValue>> {
        self.get_at(SystemTime::now(), server, hash)
    }

    /// Keeps a catalogue for 30 days. Failures are told in the log and cost nothing else. Like [`Cache::get`] it waits for the
    /// disk: not for a loop that others wait for.
    pub fn put(&self, server: &str, hash: &str, catalogue: &RawValue) {
        if let Err(error) = self.put_at(SystemTime::now(), server, hash, catalogue) {
            tracing::warn!(target: "cache", "the catalogue of {server} is not kept: {error}");
        }
    }

    fn get_at(&self, now: SystemTime, server: &str, hash: &str) -> Option<Box<RawValue>> {
        let mut text = String::new();
        let file = File::open(self.path(server, hash)).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        file.take(LARGEST).read_to_string(&mut text).ok()?;
        let kept: Kept<String, Box<RawValue>> = serde_json::from_str(&text).ok()?;
        let now = seconds(now);
        let lives = kept.expires > now && kept.expires <= now.saturating_add(LIFETIME.as_secs());
        (kept.version == VERSION && kept.server == server && kept.config_hash == hash && lives)
            .then_some(kept.catalogue)
    }

    fn put_at(&self, now: SystemTime, server: &str, hash: &str, catalogue: &RawValue) -> io::Result<()> {
        let expires = seconds(now) + LIFETIME.as_secs();
        let kept = Kept { version: VERSION, server, config_hash: hash, expires, catalogue };
        let bytes = serde_json::to_vec(&kept)?;
        if bytes.len() as u64 >= LARGEST {
            return Err(io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20)));
        }
        atomic::write(&self.path(server, hash), &bytes, Lasting::No)?;
        self.sweep(now);
        Ok(())
    }

    /// The beginning is for people; the digest tells apart what looks alike, and fits any file system.
    fn path(&self, server: &str, hash: &str) -> PathBuf {
        let mark = digest(&SHA256, format!("{}:{server}{hash}", server.len()).as_bytes());
        let mark: String = mark.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = server.chars().take(40).map(plain).collect();
        self.folder.join(format!("{name}-{mark}.{EXTENSION}"))
    }

    /// Takes away what nobody will ask for any more.
    fn sweep(&self, now: SystemTime) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            let Some(limit) = limit(&path) else { continue };
            let written = entry.metadata().and_then(|metadata| metadata.modified());
            if written.is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age > limit)) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// How old a file of ours may get. Others' files are left alone.
fn limit(path: &Path) -> Option<Duration> {
    let name = path.file_name()?.to_str()?;
    if name.starts_with(atomic::UNFINISHED) {
        return Some(ABANDONED);
    }
    let mark = name.strip_suffix(EXTENSION)?.strip_suffix('.')?.rsplit_once('-')?.1;
    (mark.len() == 32 && mark.bytes().all(|b| b.is_ascii_hexdigit())).then_some(LIFETIME)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Scratch {
            Scratch(std::env::temp_dir().join(format!("mcpwire-cache-{:016x}", fastrand::u64(..))))
        }

        fn only_file(&self) -> PathBuf {
            let mut files: Vec<PathBuf> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert_eq!(files.len(), 1, "{files:?}");
            files.remove(0)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn text(got: Option<Box<RawValue>>) -> Option<String> {
        got.map(|raw| raw.get().to_owned())
    }

    #[test]
    fn what_was_put_comes_back_as_it_was() {
        let scratch = Scratch::new();
        let cache = Cache::new(&scratch.0);
        assert!(cache.get("one", "h1").is_none());
        cache.put("one", "h1", &raw(r#"{"tools": [1.10, 12345678901234567890]}"#));
        assert_eq!(text(cache.get("one", "h1")).as_deref(), Some(r#"{"tools": [1.10, 12345678901234567890]}"#));
        cache.put("one", "h1", &raw("2"));
        assert_eq!(text(cache.get("one", "h1")).as_deref(), Some("2"));
    }

    #[test]
    fn another_server_or_configuration_is_a_miss() {
        let scratch = Scratch::new();
        let cache = Cache::new(&scratch.0);
        cache.put("one", "h1", &raw("1"));
        assert!(cache.get("one", "h2").is_none());
        assert!(cache.get("two", "h1").is_none());
        assert!(cache.get("oneh", "1").is_none());
        // Even in the file of another.
        fs::copy(cache.path("one", "h1"), cache.path("two", "h1")).unwrap();
        assert!(cache.get("two", "h1").is_none());
    }

    #[test]
    fn names_lead_nowhere_else() {
        let scratch = Scratch::new();
        let cache = Cache::new(&scratch.0);
        for name in ["../../x", "/etc/passwd", "", ".", "a\0b", "ü".repeat(300).as_str()] {
            cache.put(name, "h", &raw("1"));
            assert_eq!(text(cache.get(name, "h")).as_deref(), Some("1"), "{name:?}");
            assert_eq!(cache.path(name, "h").parent(), Some(scratch.0.as_path()));
        }
    }

    #[test]
    fn it_lasts_thirty_days() {
        let scratch = Scratch::new();
        let cache = Cache::new(&scratch.0);
        let now = SystemTime::now();
        cache.put_at(now, "one", "h", &raw("1")).unwrap();
        let day = Duration::from_secs(24 * 3600);
        assert!(cache.get_at(now + day * 29, "one", "h").is_some());
        assert!(cache.get_at(now + day * 30, "one", "h").is_none());
        // A clock that was wrong when it was put must not keep it for ever.
        assert!(cache.get_at(now - day, "one", "h").is_none());
    }

    #[test]
    fn damage_and_other_versions_are_a_miss() {
        let scratch = Scratch::new();
        let cache = Cache::new(&scratch.0);
        cache.put("one", "h", &raw(r#"{"tools":[]}"#));
        let file = scratch.only_file();
        let good = fs::read_to_string(&file).unwrap();
        for cut in 0..good.len() {
            fs::write(&file, &good[..cut]).unwrap();
            assert!(cache.get("one", "h").is_none(), "cut at {cut}");
        }
        for bad in
            [good.replace("\"version\":1", "\"version\":2"), "\u{0}\u{1}".into(), "[]".into(), good.clone() + "x"]
        {
            fs::write(&file, bad).unwrap();
            assert!(cache.get("one", "h").is_none());
        }
        fs::write(&file, b"\xff\xfe").unwrap();
        assert!(cache.get("one", "h").is_none());
        fs::write(&file, good).unwrap();
        assert!(cache.get("one", "h").is_some());
    }

    #[test]
    fn only_the_user_can_read_it() {
        let scratch = Scratch::new();
        Cache::new(&scratch.0).put("one", "h", &raw("1"));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&scratch.0), mode(&scratch.only_file())), (0o700, 0o600));
    }

    #[test]
    fn old_files_of_ours_are_swept_and_no_others() {
        let scratch = Scratch::new();
        let cache = Cache::new(&scratch.0);
        cache.put("one", "h1", &raw("1"));
        fs::write(scratch.0.join(format!("{}1", atomic::UNFINISHED)), "half").unwrap();
        fs::write(scratch.0.join("mine.json"), "{}").unwrap();
        let later = SystemTime::now() + Duration::from_secs(31 * 24 * 3600);
        cache.sweep(later);
        assert_eq!(scratch.only_file(), scratch.0.join("mine.json"));
    }

    #[test]
    fn where_nothing_can_be_written_nothing_else_is_hurt() {
        let cache = Cache::new("/proc/mcpwire");
        cache.put("one", "h", &raw("1"));
        assert!(cache.get("one", "h").is_none());
    }

    #[test]
    fn many_at_once_see_whole_catalogues_only() {
        let scratch = Scratch::new();
        let cache = Cache::new(&scratch.0);
        let catalogues: Vec<Box<RawValue>> =
            (0..8).map(|n| raw(&format!("\"{}\"", n.to_string().repeat(50_000)))).collect();
        cache.put("one", "h", &catalogues[0]);
        std::thread::scope(|scope| {
            for catalogue in &catalogues {
                let cache = cache.clone();
                scope.spawn(move || (0..20).for_each(|_| cache.put("one", "h", catalogue)));
            }
            for _ in 0..200 {
                let got = text(cache.get("one", "h")).expect("it is there all the time");
                assert!(catalogues.iter().any(|catalogue| catalogue.get() == got));
            }
        });
        scratch.only_file();
    }
}
