//! Certificates on disk: made once, whole, private, renewed in time, and by two at once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, Issuer, KeyPair};

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        Folder(std::env::temp_dir().join(format!("mcpwire-certs-{:016x}", fastrand::u64(..))).join("deep/er"))
    }

    fn certs(&self) -> Certs {
        Certs::new(&self.0)
    }

    /// Makes the folder, whatever the umask says.
    fn create(&self) {
        fs::create_dir_all(&self.0).unwrap();
        fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.ancestors().nth(2).unwrap());
    }
}

#[test]
fn the_authority_is_made_once_and_files_are_private() {
    let folder = Folder::new();
    folder.certs().identity("orchestrator").unwrap();
    let authority = folder.read("ca.crt");
    folder.certs().identity("other").unwrap();
    assert_eq!(folder.read("ca.crt"), authority);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.0), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder.0).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, [".lock", "ca.crt", "ca.key", "orchestrator.crt", "orchestrator.key", "other.crt", "other.key"]);
    let first = folder.read("other.crt");
    folder.certs().identity("other").unwrap();
    assert_eq!(folder.read("other.crt"), first, "a good leaf is left alone");
}

#[test]
fn certificates_say_what_they_should() {
    let folder = Folder::new();
    folder.certs().identity("my-plugin").unwrap();
    let views = folder.certs().list().unwrap();
    assert_eq!(views[0].subject, "O=Orchestra, CN=Orchestra CA");
    assert_eq!(views[1].subject, "O=Orchestra, CN=my-plugin");
    assert_eq!(views[1].hosts, ["my-plugin", "localhost", "127.0.0.1", "::1"]);
    let left = views[1].until.duration_since(SystemTime::now()).unwrap().as_secs() / 86400;
    assert!((364..=365).contains(&left), "{left}");
    // PKCS#8 of the first version, which every program reads.
    assert_eq!(folder.read("ca.key").lines().nth(1).unwrap().len(), 64);
}

#[test]
fn many_starters_at_once_agree_on_one_authority() {
    let folder = Folder::new();
    let barrier = Barrier::new(16);
    let identities: Vec<Identity> = thread::scope(|scope| {
        let starters: Vec<_> = (0..16)
            .map(|n| {
                let (folder, barrier) = (&folder, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    folder.certs().identity(&format!("p{}", n % 4)).unwrap()
                })
            })
            .collect();
        starters.into_iter().map(|starter| starter.join().unwrap()).collect()
    });
    for (n, identity) in identities.iter().enumerate() {
        assert_eq!(identity.authority, identities[0].authority);
        assert_eq!(identity.chain, identities[n % 4].chain);
        assert!(is_current(identity, Duration::ZERO));
    }
}

#[test]
fn a_half_written_pair_is_waited_for() {
    let (folder, made) = (Folder::new(), Folder::new());
    made.certs().identity("x").unwrap();
    folder.create();
    fs::write(folder.0.join("ca.crt"), made.read("ca.crt")).unwrap();
    fs::write(folder.0.join("ca.key"), "-----BEGIN PRIV").unwrap();
    fs::set_permissions(folder.0.join("ca.key"), fs::Permissions::from_mode(0o600)).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| folder.certs().identity("y"));
        thread::sleep(PAUSE * 3);
        fs::write(folder.0.join("ca.key"), made.read("ca.key")).unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(folder.read("ca.crt"), made.read("ca.crt"));
}

/// `ca.key` stays on the machine that signs.
#[test]
fn a_second_machine_needs_the_certificate_of_the_authority_and_a_pair_of_its_own() {
    let (first, second) = (Folder::new(), Folder::new());
    first.certs().identity("x").unwrap();
    second.create();
    for name in ["ca.crt", "x.crt", "x.key"] {
        fs::copy(first.0.join(name), second.0.join(name)).unwrap();
    }
    let identity = second.certs().identity("x").unwrap();
    assert_eq!(identity.chain, first.certs().identity("x").unwrap().chain);
    assert!(!second.0.join(".lock").exists(), "nothing was written");
    for error in [second.certs().identity("y"), second.certs().renew("x", &[])] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no ca.key") && error.contains("mcpwire certs make"), "{error}");
    }
    assert_eq!(second.read("ca.crt"), first.read("ca.crt"));
    // One that ends soon is used to its end.
    age(&first, "x", SystemTime::now() + Duration::from_secs(86400));
    fs::copy(first.0.join("x.crt"), second.0.join("x.crt")).unwrap();
    assert!(is_current(&second.certs().identity("x").unwrap(), Duration::ZERO));
    age(&first, "x", SystemTime::now() - Duration::from_secs(86400));
    fs::copy(first.0.join("x.crt"), second.0.join("x.crt")).unwrap();
    assert!(matches!(second.certs().identity("x"), Err(Error::CannotSign { .. })));
}

#[test]
fn what_others_can_change_and_keys_that_others_can_read_are_refused() {
    let folder = Folder::new();
    folder.certs().identity("x").unwrap();
    let path = |name: &str| if name.is_empty() { folder.0.clone() } else { folder.0.join(name) };
    let set = |name: &str, mode: u32| fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
    for (name, good, bad) in [
        ("", 0o755, &[0o777, 0o770, 0o1777, 0o702][..]),
        ("x.key", 0o400, &[0o644, 0o640, 0o604, 0o620, 0o602]),
        ("x.crt", 0o644, &[0o666, 0o664]),
        ("ca.crt", 0o644, &[0o666, 0o646]),
    ] {
        for bad in bad {
            set(name, *bad);
            let error = folder.certs().identity("x").unwrap_err().to_string();
            assert!(error.contains(&format!("got mode {bad:04o}")) && error.contains("chmod"), "{error}");
        }
        set(name, good);
        folder.certs().identity("x").unwrap();
    }
    set("ca.key", 0o644);
    assert!(matches!(folder.certs().identity("y"), Err(Error::Exposed { .. })));
    assert!(matches!(folder.certs().renew_authority(), Ok(())), "a new key replaces it");
    set("", 0o777);
    assert!(matches!(folder.certs().renew_authority(), Err(Error::Exposed { .. })));
    assert!(matches!(folder.certs().list(), Err(Error::Exposed { .. })));
}

/// Signs a leaf, or the authority itself, that ends at this time.
fn age(folder: &Folder, name: &str, ends: SystemTime) {
    let key = KeyPair::from_pem(&folder.read(&format!("{name}.key"))).unwrap();
    let ca_key = KeyPair::from_pem(&folder.read("ca.key")).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&folder.read("ca.crt"), ca_key).unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned(), "far.example".to_owned()]).unwrap();
    params.not_before = (ends - Duration::from_secs(1000 * 86400)).into();
    params.not_after = ends.into();
    let signed = match name {
        AUTHORITY => params.self_signed(&key),
        _ => params.signed_by(&key, &issuer),
    };
    fs::write(folder.0.join(format!("{name}.crt")), signed.unwrap().pem()).unwrap();
}

#[test]
fn a_leaf_that_ends_soon_is_renewed_for_the_same_hosts() {
    let folder = Folder::new();
    folder.certs().identity("x").unwrap();
    for left in [-1, 3] {
        let ends =
            SystemTime::now() + Duration::from_secs(10 * 86400) - Duration::from_secs((10 - left) as u64 * 86400);
        age(&folder, "x", ends);
        let renewed = folder.certs().identity("x").unwrap();
        assert!(is_current(&renewed, RENEW_BEFORE));
        assert!(folder.certs().list().unwrap()[1].hosts.contains(&"far.example".to_owned()));
    }
}

#[test]
fn an_authority_that_ended_is_told_and_made_anew_when_asked() {
    let folder = Folder::new();
    folder.certs().identity("x").unwrap();
    age(&folder, AUTHORITY, SystemTime::now() - Duration::from_secs(86400));
    let error = folder.certs().identity("x").unwrap_err().to_string();
    assert!(error.contains("certs renew --ca"), "{error}");
    folder.certs().renew_authority().unwrap();
    // The leaf of the old authority is of no use.
    assert!(is_current(&folder.certs().identity("x").unwrap(), RENEW_BEFORE));
}

#[test]
fn names_stay_in_the_folder() {
    let folder = Folder::new();
    for name in ["", "../x", "a/b", ".hidden", "ca", "a b", "\0"] {
        assert!(matches!(folder.certs().identity(name), Err(Error::Name(_))), "{name:?}");
    }
}

#[test]
fn debug_shows_no_key() {
    let folder = Folder::new();
    assert_eq!(format!("{:?}", folder.certs().identity("x").unwrap()), "Identity");
}
