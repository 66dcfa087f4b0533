//! Why an HTTP request got no answer, and what that means for the message in it.

use std::error::Error;

use http::StatusCode;
use hyper_util::client::legacy::connect::Connected;
use mcpwire_proto::Failure;

use super::status;
use super::verify::Distrust;

/// Why an HTTP request got no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There is no connection to the server.
    #[error("{0}")]
    Unreachable(String),
    /// There is a connection, and it was not or could not be secured.
    #[error("{0}")]
    Tls(String),
    #[error("the server's certificate is not trusted: {0}")]
    Distrusted(Distrust),
    /// The server did not process the request: it never left, or HTTP/2 says so.
    #[error("{0}")]
    NotProcessed(String),
    /// The connection broke before there was an answer: the request may have been executed.
    #[error("{0}")]
    Interrupted(String),
    #[error("HTTP {status}: the server redirects to {location:?}")]
    Redirected { status: StatusCode, location: String },
    #[error("the server redirects in a circle")]
    RedirectLoop,
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Failure {
        let text = error.to_string();
        match error {
            SendError::Unreachable(_) | SendError::Tls(_) => Failure::NotConnected(text),
            SendError::NotProcessed(_) => Failure::Unreachable(text),
            SendError::Interrupted(_) => Failure::Interrupted(text),
            SendError::Distrusted(reason) => status::refused(&format!("{text}; {}", reason.advice()), None),
            SendError::Redirected { status, location } => {
                let why = format!("the server redirects to {location:?}; connect to that URL if you trust it");
                status::not_followed(status, &why)
            }
            SendError::RedirectLoop => status::refused(&text, None),
        }
    }
}

impl From<hyper_util::client::legacy::Error> for SendError {
    fn from(error: hyper_util::client::legacy::Error) -> SendError {
        let why = match find::<rustls::Error>(&error) {
            Some(rustls::Error::AlertReceived(alert)) => {
                format!("the server broke off TLS: {}", words(&format!("{alert:?}")))
            }
            // The outermost error says no more than that there is one.
            _ => error.source().map_or_else(|| error.to_string(), chain),
        };
        if let Some(reason) = find::<Distrust>(&error) {
            return SendError::Distrusted(reason.clone());
        }
        match find::<rustls::Error>(&error) {
            Some(rustls::Error::InvalidMessage(_)) if error.is_connect() => {
                SendError::Tls("what answers there does not speak TLS".into())
            }
            Some(_) if error.is_connect() => SendError::Tls(why),
            _ if error.is_connect() => SendError::Unreachable(why),
            _ if was_not_processed(&error) => SendError::NotProcessed(why),
            _ => SendError::Interrupted(why),
        }
    }
}

/// Whether a request that was handed to a connection is known not to have been processed: it was still waiting for its turn
/// when the connection closed, or HTTP/2 says so (RFC 9113, 8.7).
fn was_not_processed(error: &hyper_util::client::legacy::Error) -> bool {
    let by_hyper = find::<hyper::Error>(error);
    let never_sent = by_hyper.is_some_and(hyper::Error::is_canceled);
    // hyper drops the request that waits for a free stream when the server goes away, and blames its user. The body of such a
    // request has not left yet.
    let is_http2 = error.connect_info().is_some_and(Connected::is_negotiated_h2);
    let dropped = is_http2 && by_hyper.is_some_and(hyper::Error::is_user);
    never_sent || dropped || find::<h2::Error>(error).is_some_and(tells_not_processed)
}

/// The server refused the stream, or closes the connection in good order and names an earlier stream as the last that it may
/// process. h2 ends only later streams with the server's GOAWAY; the others go on, and fail with the connection if at all.
fn tells_not_processed(error: &h2::Error) -> bool {
    let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    let going_away = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
    error.is_remote() && (refused || going_away)
}

/// The words of a name such as `CertificateRequired`.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && at > 0 && !name[..at].ends_with(|before: char| before.is_ascii_uppercase()) {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// Looks for an error among the causes of another, also where `io::Error` or rustls hide it.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = hidden(error).or_else(|| error.source());
    }
    None
}

fn hidden<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other))) = error.downcast_ref() {
        return Some(&*other.0);
    }
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    inner.map(|inner| inner as &(dyn Error + 'static))
}

/// An error with its causes, each said once.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_told_in_words() {
        assert_eq!(words("CertificateRequired"), "certificate required");
        assert_eq!(words("UnknownCA"), "unknown ca");
    }

    #[test]
    fn only_what_was_not_processed_counts_as_that() {
        let own = h2::Error::from(h2::Reason::REFUSED_STREAM);
        assert!(!tells_not_processed(&own), "it is not the server that says so");
    }
}
