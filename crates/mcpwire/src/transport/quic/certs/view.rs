//! What a certificate says of itself, for people and for renewing it.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// One certificate of the folder.
#[derive(Debug, Clone)]
pub struct View {
    pub name: String,
    pub subject: String,
    /// Host names and addresses that it is good for.
    pub hosts: Vec<String>,
    pub until: SystemTime,
}

impl Default for View {
    fn default() -> View {
        View { name: String::new(), subject: String::new(), hosts: Vec::new(), until: SystemTime::UNIX_EPOCH }
    }
}

impl View {
    pub(super) fn of(name: &str, pem: &str) -> Result<View, String> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
        let until = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0);
        let names = parsed.subject_alternative_name().ok().flatten();
        let hosts = names.iter().flat_map(|names| &names.value.general_names).filter_map(host).collect();
        Ok(View {
            name: name.to_owned(),
            subject: parsed.subject().to_string(),
            hosts,
            until: SystemTime::UNIX_EPOCH + Duration::from_secs(until),
        })
    }

    /// The last moment of its life, as people write it.
    pub fn until_text(&self) -> String {
        humantime::format_rfc3339_seconds(self.until).to_string()
    }
}

fn host(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
        },
        _ => None,
    }
}
