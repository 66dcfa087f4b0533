//! URI templates, as far as it takes to recognise what was made from one.

/// Whether a URI may have been made from a template (RFC 6570): the text around the expressions is there, in order.
pub(super) fn made_from(template: &str, uri: &str) -> bool {
    let mut literals = Vec::new();
    let mut rest = template;
    while let Some((literal, expression)) = rest.split_once('{') {
        literals.push(literal);
        rest = expression.split_once('}').map_or("", |(_, after)| after);
    }
    let Some((first, between)) = literals.split_first() else { return template == uri };
    let Some(mut uri) = uri.strip_prefix(first) else { return false };
    for literal in between {
        match uri.find(literal) {
            Some(at) => uri = &uri[at + literal.len()..],
            None => return false,
        }
    }
    uri.ends_with(rest)
}

/// How much of a template is literal text; `None` if it has no scheme of its own and so may fit any URI.
pub(super) fn literal_length(template: &str) -> Option<usize> {
    let start = template.split('{').next().unwrap_or_default();
    let literals = template.split('{').enumerate().map(|(n, part)| match (n, part.split_once('}')) {
        (0, _) => part.len(),
        (_, Some((_, after))) => after.len(),
        (_, None) => 0,
    });
    start.contains(':').then(|| literals.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        for (template, uri, made) in [
            ("note://{id}", "note://7", true),
            ("note://{id}/x", "note://7/x", true),
            ("note://{id}/x", "note://7/y", false),
            ("file:///{+path}", "file:///a/b", true),
            ("db://{table}/{row}", "db://t/1", true),
            ("db://{table}/{row}", "dc://t/1", false),
            ("a://b", "a://b", true),
            ("a://b", "a://c", false),
            ("a://{x", "a://c", true),
        ] {
            assert_eq!(made_from(template, uri), made, "{template} {uri}");
        }
    }

    #[test]
    fn templates_without_a_scheme_may_fit_anything() {
        for (template, length) in [
            ("{+any}", None),
            ("{scheme}://x", None),
            ("note://{id}", Some(7)),
            ("note://{id}/x", Some(9)),
            ("a://{x}/{y}z", Some(6)),
            ("a://{x", Some(4)),
            ("a://b", Some(5)),
        ] {
            assert_eq!(literal_length(template), length, "{template}");
        }
    }
}
