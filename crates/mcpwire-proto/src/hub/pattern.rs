//! Texts with gaps: patterns of tool names, and URI templates.

/// Whether a name fits a pattern, in which `*` stands for any text and `?` for one character.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last `*` was, and up to where it was tried.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, tried)) => {
                    star = Some((at, tried + 1));
                    (p, n) = (at + 1, tried + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, fit) in [
            ("get_*", "get_x", true),
            ("get_*", "set_x", false),
            ("*", "", true),
            ("?", "", false),
            ("*_x_*", "a_x_x_b", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("é?", "éé", true),
            ("plain", "plain", true),
            ("plain", "plainer", false),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }

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
}
