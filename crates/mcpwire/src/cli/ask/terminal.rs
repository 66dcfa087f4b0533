//! Text for people: tables, colours and widths on a terminal, plain text anywhere else.

use std::io::{self, IsTerminal};

/// Where a text is read, and what may be done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// How many columns there are; `None` if it is no terminal.
    pub(crate) width: Option<usize>,
    pub(crate) colour: bool,
}

/// What a text stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    Heading,
    Name,
    Faint,
    Good,
    Warning,
    Bad,
}

impl Terminal {
    pub(crate) fn stdout() -> Terminal {
        let stdout = io::stdout();
        Terminal::of(stdout.is_terminal(), rustix::termios::tcgetwinsize(&stdout).ok())
    }

    pub(crate) fn stderr() -> Terminal {
        let stderr = io::stderr();
        Terminal::of(stderr.is_terminal(), rustix::termios::tcgetwinsize(&stderr).ok())
    }

    fn of(terminal: bool, size: Option<rustix::termios::Winsize>) -> Terminal {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        Terminal { width: terminal.then(|| columns.unwrap_or(80)), colour: terminal && !dumb && !set("NO_COLOR") }
    }

    pub(crate) fn styled(self, style: Style, text: &str) -> String {
        let code = match style {
            _ if !self.colour => return text.to_owned(),
            Style::Heading => "2",
            Style::Name => "1",
            Style::Faint => "2",
            Style::Good => "32",
            Style::Warning => "33",
            Style::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// A text of somebody else's: on a terminal it must not steer it.
    pub(crate) fn safe(self, text: &str) -> String {
        if self.width.is_none() {
            return text.to_owned();
        }
        let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
        text.replace("\r\n", "\n").chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
    }

    /// Rows under headings. The last column takes what room is left.
    pub(crate) fn table(self, headings: &[&str], rows: &[Vec<String>]) -> String {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
        let last = headings.len().saturating_sub(1);
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
            cells.chain([headings[column]]).map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..last).map(width).collect();
        let used: usize = widths.iter().map(|width| width + 2).sum();
        let room = self.width.map(|width| width.saturating_sub(used).max(20));
        let mut out = String::new();
        let mut line = |cells: &[String], style: &dyn Fn(usize) -> Option<Style>| {
            let mut text = String::new();
            for (column, cell) in cells.iter().enumerate() {
                let shown = if column == last { shortened(cell, room) } else { cell.clone() };
                let pad = widths.get(column).map_or(0, |width| width + 2 - shown.chars().count());
                let shown = style(column).map_or(shown.clone(), |style| self.styled(style, &shown));
                text.push_str(&shown);
                text.push_str(&" ".repeat(pad));
            }
            out.push_str(text.trim_end());
            out.push('\n');
        };
        line(&headings.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), &|_| Some(Style::Heading));
        for row in &rows {
            line(row, &|column| (column == 0).then_some(Style::Name));
        }
        out
    }
}

/// In a table every row is a line, and nothing in it steers the terminal.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn shortened(text: &str, room: Option<usize>) -> String {
    match room {
        Some(room) if text.chars().count() > room => text.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Terminal = Terminal { width: None, colour: false };

    #[test]
    fn a_table_is_aligned_and_cut_on_a_terminal_only() {
        let rows = [vec!["echo".to_owned(), "Says it\nagain\x1b[2J".to_owned()], vec!["a".to_owned(), "x".repeat(40)]];
        let table = PLAIN.table(&["NAME", "DESCRIPTION"], &rows);
        assert_eq!(table, format!("NAME  DESCRIPTION\necho  Says it again [2J\na     {}\n", "x".repeat(40)));
        let narrow = Terminal { width: Some(30), colour: false };
        let table = narrow.table(&["NAME", "DESCRIPTION"], &rows);
        assert_eq!(table.lines().last().unwrap(), format!("a     {}…", "x".repeat(23)));
        let coloured = Terminal { width: Some(80), colour: true }.table(&["NAME", "D"], &rows[..1]);
        assert!(coloured.contains("\x1b[1mecho\x1b[0m  Says"), "{coloured:?}");
    }

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        let terminal = Terminal { width: Some(80), colour: false };
        assert_eq!(terminal.safe("a\x1b]0;x\x07\n\tb\r\n"), "a\u{fffd}]0;x\u{fffd}\n\tb\n");
        assert_eq!(PLAIN.safe("a\x1b"), "a\x1b");
    }
}
