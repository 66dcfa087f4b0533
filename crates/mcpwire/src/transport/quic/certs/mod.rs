//! Certificates in a folder that programs share (`~/.orchestra/certs`): an authority, and a leaf for each program by name.
//!
//! Whoever comes first makes the authority. Files appear whole or not at all, and a lock keeps two starters of ours
//! apart; programs of others write theirs without one, so a half-written pair is given a moment to become whole. A machine
//! that has the authority's certificate and a pair signed by it needs no `ca.key`. Files that others can change, and keys
//! that others can read, are refused.

mod files;
mod guard;
mod make;
mod view;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fmt, io, thread};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;

use self::files::Lock;
pub use self::view::View;
use super::tls::provider;

/// The name of the authority's files.
pub const AUTHORITY: &str = "ca";
/// A leaf with less left is made anew.
const RENEW_BEFORE: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a pair that another program is just writing may take.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// What is wrong with the certificates.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: expected a certificate and its key in PEM form: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("the authority in {} ended on {when}; `mcpwire certs renew --ca` makes a new one", path.display())]
    Expired { path: PathBuf, when: String },
    #[error("{}: the certificate is here and the key is not", path.display())]
    NoKey { path: PathBuf },
    #[error(
        "{}: there is no ca.key to sign a certificate of {name} with, and none that can be used as it is; \
         run `mcpwire certs make {name}` where ca.key is, and copy {name}.crt and {name}.key here",
        folder.display()
    )]
    CannotSign { folder: PathBuf, name: String },
    #[error(
        "{}: expected {what}, got mode {mode:04o}; run `chmod {chmod} '{}'` if nobody else can have used it, \
         or make new certificates in another folder", path.display(), path.display()
    )]
    Exposed { path: PathBuf, what: &'static str, mode: u32, chmod: &'static str },
    #[error("{}: expected a file or folder of yours, got one of the user with the number {owner}", path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("expected a name of letters, digits, '.', '-' and '_', came {0:?}")]
    Name(String),
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("cannot get random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

/// Who we are to peers, and whom we trust.
pub struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) authority: CertificateDer<'static>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

impl Clone for Identity {
    fn clone(&self) -> Identity {
        Identity { chain: self.chain.clone(), key: self.key.clone_key(), authority: self.authority.clone() }
    }
}

/// A folder of certificates.
#[derive(Debug, Clone)]
pub struct Certs {
    folder: PathBuf,
}

/// A certificate and its key, as they lie in their files.
struct Pair {
    certificate: String,
    key: String,
}

impl Certs {
    pub fn new(folder: impl Into<PathBuf>) -> Certs {
        Certs { folder: folder.into() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The identity of that name: the one in the folder, or a new one if there is none, it ends soon, or the authority
    /// has changed.
    pub fn identity(&self, name: &str) -> Result<Identity, Error> {
        check_name(name)?;
        // Most of the time all is there: nothing is written then, and `ca.key` may be elsewhere.
        match self.present(name, RENEW_BEFORE)? {
            Some(identity) => Ok(identity),
            None => self.leaf(name, &[], false),
        }
    }

    /// Makes a new leaf, for these hosts besides those that it had.
    pub fn renew(&self, name: &str, hosts: &[String]) -> Result<Identity, Error> {
        self.leaf(name, hosts, true)
    }

    /// Makes a new authority. Leaves of the old one are made anew when they are next used.
    pub fn renew_authority(&self) -> Result<(), Error> {
        let _lock = Lock::take(&self.folder)?;
        self.store(AUTHORITY, &make::authority()?)
    }

    /// Every certificate in the folder, the authority first.
    pub fn list(&self) -> Result<Vec<View>, Error> {
        guard::check_folder(&self.folder)?;
        let mut views = Vec::new();
        for name in files::names(&self.folder)? {
            let path = files::certificate(&self.folder, &name);
            let text = files::read(&path)?.unwrap_or_default();
            views.push(View::of(&name, &text).map_err(|why| Error::Unreadable { path, why })?);
        }
        views.sort_by_key(|view| (view.name != AUTHORITY, view.name.clone()));
        Ok(views)
    }

    fn leaf(&self, name: &str, hosts: &[String], anew: bool) -> Result<Identity, Error> {
        check_name(name)?;
        let _lock = Lock::take(&self.folder)?;
        let authority = match self.authority() {
            Err(Error::NoKey { .. }) => return self.unsigned(name, anew),
            authority => authority?,
        };
        let present = self.load(name).ok().flatten();
        let usable = present.as_ref().and_then(|pair| identity(pair, &authority.certificate).ok());
        if let Some(usable) = usable.filter(|found| !anew && is_current(found, RENEW_BEFORE)) {
            return Ok(usable);
        }
        if present.is_some() {
            tracing::info!(target: "certs", "making a new certificate for {name}");
        }
        let mut names = present.and_then(|old| View::of(name, &old.certificate).ok()).unwrap_or_default().hosts;
        names.extend_from_slice(hosts);
        let pair = make::leaf(name, &names, &authority)?;
        self.store(name, &pair)?;
        identity(&pair, &authority.certificate)
            .map_err(|why| Error::Unreadable { path: files::certificate(&self.folder, name), why })
    }

    /// The identity of that name as it is in the folder, if it is good for this long.
    fn present(&self, name: &str, margin: Duration) -> Result<Option<Identity>, Error> {
        guard::check_folder(&self.folder)?;
        let authority = files::read(&files::certificate(&self.folder, AUTHORITY))?;
        let certificate = files::read(&files::certificate(&self.folder, name))?;
        let key = files::read_key(&files::key(&self.folder, name))?;
        let (Some(authority), Some(certificate), Some(key)) = (authority, certificate, key) else { return Ok(None) };
        let lasts = View::of(AUTHORITY, &authority).is_ok_and(|view| view.until > SystemTime::now());
        let found = identity(&Pair { certificate, key }, &authority).ok();
        Ok(found.filter(|found| lasts && is_current(found, margin)))
    }

    /// The identity where no new one can be signed.
    fn unsigned(&self, name: &str, anew: bool) -> Result<Identity, Error> {
        let cannot_sign = || Error::CannotSign { folder: self.folder.clone(), name: name.to_owned() };
        if anew {
            return Err(cannot_sign());
        }
        let identity = self.present(name, Duration::ZERO)?.ok_or_else(cannot_sign)?;
        tracing::warn!(target: "certs", "the certificate of {name} ends soon, and there is no ca.key here to make a new one");
        Ok(identity)
    }

    /// The authority, made if there is none.
    fn authority(&self) -> Result<Pair, Error> {
        let path = files::certificate(&self.folder, AUTHORITY);
        let Some(pair) = self.load(AUTHORITY)? else {
            let pair = make::authority()?;
            self.store(AUTHORITY, &pair)?;
            tracing::info!(target: "certs", "made an authority in {}", self.folder.display());
            return Ok(pair);
        };
        let unreadable = |why| Error::Unreadable { path: path.clone(), why };
        let view = View::of(AUTHORITY, &pair.certificate).map_err(unreadable)?;
        if view.until <= SystemTime::now() {
            return Err(Error::Expired { path, when: view.until_text() });
        }
        Ok(pair)
    }

    /// A pair of files; `None` if there is neither. One without the other, or a half-written one, is waited for.
    fn load(&self, name: &str) -> Result<Option<Pair>, Error> {
        let path = files::certificate(&self.folder, name);
        let mut waited = Duration::ZERO;
        loop {
            let unreadable = |why: String| Error::Unreadable { path: path.clone(), why };
            let error = match (files::read(&path)?, files::read_key(&files::key(&self.folder, name))?) {
                (None, None) => return Ok(None),
                (Some(certificate), Some(key)) => match whole(&certificate, &key) {
                    Ok(()) => return Ok(Some(Pair { certificate, key })),
                    Err(why) => unreadable(why),
                },
                (Some(_), None) => Error::NoKey { path: path.clone() },
                (None, Some(_)) => unreadable("the certificate is missing".to_owned()),
            };
            if waited >= PATIENCE {
                return Err(error);
            }
            thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    /// The key first: a certificate that can be seen has its key beside it.
    fn store(&self, name: &str, pair: &Pair) -> Result<(), Error> {
        files::write(&files::key(&self.folder, name), &pair.key)?;
        files::write(&files::certificate(&self.folder, name), &pair.certificate)
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || name == AUTHORITY || name.len() > 64 || name.starts_with('.') || !name.chars().all(plain) {
        return Err(Error::Name(name.to_owned()));
    }
    Ok(())
}

fn whole(certificate: &str, key: &str) -> Result<(), String> {
    CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|error| error.to_string())?;
    PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| error.to_string())?;
    Ok(())
}

/// What a pair is good for, if its certificate and key fit.
fn identity(pair: &Pair, authority: &str) -> Result<Identity, String> {
    let text = |error: rustls::pki_types::pem::Error| error.to_string();
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect::<Result<_, _>>().map_err(text)?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(text)?;
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).map_err(text)?;
    CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider()).map_err(|error| error.to_string())?;
    Ok(Identity { chain, key, authority })
}

/// Whether the authority vouches for it, and will for a while.
fn is_current(identity: &Identity, margin: Duration) -> bool {
    let Some((leaf, between)) = identity.chain.split_first() else { return false };
    let mut roots = rustls::RootCertStore::empty();
    if roots.add(identity.authority.clone()).is_err() {
        return false;
    }
    let Ok(verifier) = WebPkiClientVerifier::builder_with_provider(roots.into(), provider()).build() else {
        return false;
    };
    let now = UnixTime::now();
    let then = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + margin);
    [now, then].into_iter().all(|at| verifier.verify_client_cert(leaf, between, at).is_ok())
}

#[cfg(test)]
mod tests;
