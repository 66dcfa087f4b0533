//! A change as people read it: the lines that go and come, with some around them.

/// How many lines are shown around a change.
const AROUND: usize = 3;

pub(super) fn diff(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(AROUND);
    let mut out = String::new();
    let mut say = |mark: char, lines: &[&str]| {
        for line in lines {
            out.push_str(&format!("{mark} {line}\n"));
        }
    };
    say(' ', &old[from..same]);
    say('-', &old[same..old.len() - tail]);
    say('+', &new[same..new.len() - tail]);
    say(' ', &old[old.len() - tail..(old.len() - tail + AROUND).min(old.len())]);
    out
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn a_change_is_shown_with_the_lines_around_it() {
        assert_eq!(diff("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n5\n6\n"), "  2\n  3\n  4\n+ x\n  5\n  6\n");
        assert_eq!(diff("a\nb\n", "a\nc\n"), "  a\n- b\n+ c\n");
        assert_eq!(diff("", "a\n"), "+ a\n");
        assert_eq!(diff("a\na\n", "a\na\na\n"), "  a\n  a\n+ a\n");
    }
}
