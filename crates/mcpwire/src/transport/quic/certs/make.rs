//! New certificates, of the kind that Orchestra's programs make: Ed25519, a year, an authority that signs leaves only.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519,
};
use rustls::pki_types::PrivatePkcs8KeyDer;

use super::{Error, Pair};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// Clocks differ.
const BACKDATED: Duration = Duration::from_secs(3600);
/// A PKCS#8 key of the first version for Ed25519 is this and the seed (RFC 8410, section 7). The second version, which
/// rcgen would write, is not read by all.
const PKCS8_ED25519: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// Names that every leaf is good for.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

pub(super) fn authority() -> Result<Pair, Error> {
    let key = new_key()?;
    let mut params = params("Orchestra CA", Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?.pem();
    Ok(Pair { certificate, key: key.serialize_pem() })
}

/// A leaf for a program, good for these hosts besides its own name and loopback.
pub(super) fn leaf(name: &str, hosts: &[String], authority: &Pair) -> Result<Pair, Error> {
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(&authority.key)?)?;
    let key = new_key()?;
    let mut names = vec![name.to_owned()];
    for host in LOOPBACK.into_iter().chain(hosts.iter().map(String::as_str)) {
        if !names.iter().any(|known| known == host) {
            names.push(host.to_owned());
        }
    }
    let mut params = params(name, names)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer)?.pem();
    Ok(Pair { certificate, key: key.serialize_pem() })
}

fn params(common_name: &str, names: Vec<String>) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Orchestra");
    params.distinguished_name.push(DnType::CommonName, common_name);
    let now = SystemTime::now();
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + YEAR).into();
    Ok(params)
}

fn new_key() -> Result<KeyPair, Error> {
    let mut der = PKCS8_ED25519.to_vec();
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    der.extend_from_slice(&seed);
    Ok(KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(der), &PKCS_ED25519)?)
}
