//! Lines for people that quote peers: characters that would end the line, or steer a terminal, are written as escapes.

use std::fmt::{self, Write};

/// Writes text with such characters escaped, as in `\n` and `\u{1b}`.
pub(super) struct Printable<W>(pub(super) W);

impl<W: Write> Write for Printable<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_harmful(*c)) {
            self.0.write_str(&rest[..at])?;
            write!(self.0, "{}", c.escape_default())?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

/// The whole text as one printable line.
pub(super) fn printable(text: &str) -> String {
    let mut line = Printable(String::with_capacity(text.len()));
    // A string takes everything.
    let _ = line.write_str(text);
    line.0
}

/// Control characters, line and paragraph separators, and those that change the direction of the text after them.
fn is_harmful(c: char) -> bool {
    let separates = matches!(c, '\u{2028}' | '\u{2029}');
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() && c != '\t' || separates || turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_line_or_steers_a_terminal_is_escaped() {
        for (text, line) in [
            ("plain\tgrüß \u{1f642}", "plain\tgrüß \u{1f642}"),
            ("a\r\nb", r"a\r\nb"),
            ("\u{1b}[2J\u{7}\u{9b}1m", r"\u{1b}[2J\u{7}\u{9b}1m"),
            ("a\u{0}\u{7f}\u{85}", r"a\u{0}\u{7f}\u{85}"),
            ("\u{202e}txt\u{2028}", r"\u{202e}txt\u{2028}"),
            ("", ""),
        ] {
            assert_eq!(printable(text), line);
        }
    }
}
